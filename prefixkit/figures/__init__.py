"""One module for each family of figures; `style` is what they share."""
