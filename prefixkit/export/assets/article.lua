-- One pandoc filter for both writers (html5, typst). Everything that is not plain document structure is refused or
-- made native here, so nothing raw reaches a page: numbers, references, boxes and alternative text are set here too.
local html = FORMAT:match("html") ~= nil
local stringify = pandoc.utils.stringify
local words, cell = {}, "the notebook"

local function refuse(reason, remedy)
  error("prefixkit: " .. cell .. ": " .. reason .. (remedy and (" => " .. remedy) or "") .. "\n", 0)
end
local function decoded(s) return (s:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)) end
local function quoted(s) return '"' .. s:gsub('[\\"]', "\\%0"):gsub("%s+", " ") .. '"' end
local function typst(content)
  local blocks = pandoc.utils.type(content) == "Inlines" and pandoc.Blocks{ pandoc.Plain(content) } or content
  return (pandoc.write(pandoc.Pandoc(blocks), "typst", { wrap_text = "none" }):gsub("%s+$", ""))
end

-- 0. Captions are Markdown of their own, so that none can end the block that it stands in.
local captions = {
  Div = function(div)
    if not div.classes:includes("show") then return nil end
    local blocks = pandoc.read(decoded(div.attributes.caption), words.dialect).blocks
    div.content:insert(pandoc.Div(blocks, { class = "caption" }))
    return div
  end,
}

-- 1. Raw HTML and TeX become native elements. 2. Attributes, links and pictures are checked.
local native, safe = dofile(pandoc.path.join{ pandoc.path.directory(PANDOC_SCRIPT_FILE), "native.lua" })(refuse, decoded)

-- 3. What show() displayed becomes a figure or a table, numbered in order, with its label.
local count, label_of = { figure = 0, table = 0 }, {}
local function with_number(kind, id, inlines)
  count[kind] = count[kind] + 1
  local label = words[kind] .. "\u{a0}" .. count[kind]
  if id ~= "" then
    if label_of[id] then refuse("label " .. id .. " stands twice", "give each its own") end
    label_of[id] = label
  end
  if html then
    inlines = pandoc.List{ pandoc.Span({ pandoc.Str(label .. ".") }, { class = "number" }), pandoc.Space() } .. inlines
  end
  return inlines
end
local function scrolling(tbl) return pandoc.Div({ tbl }, pandoc.Attr("", { "scroll" }, { { "role", "group" }, { "tabindex", "0" } })) end
local function numbered_table(tbl, id, inlines)
  local caption = with_number("table", id, inlines)
  if not html then
    tbl.identifier, tbl.caption.long = id, pandoc.Blocks{ pandoc.Plain(caption) }
    return tbl
  end
  tbl.caption.long = pandoc.Blocks{}
  return pandoc.Figure({ scrolling(tbl) }, { pandoc.Plain(caption) }, { id = id, class = "table" })
end
local function numbered_figure(img, id, inlines)
  local caption = with_number("figure", id, inlines)
  img.caption = pandoc.Inlines{ pandoc.Str(img.attributes.alt) }
  return pandoc.Figure({ pandoc.Plain{ img } }, { pandoc.Plain(caption) }, { id = id })
end
local shown = {
  traverse = "topdown",
  Div = function(div)
    if not div.classes:includes("show") then return nil end
    local img, tbl, caption
    div:walk{
      traverse = "topdown",
      Div = function(d) if d.classes:includes("caption") then caption = d return d, false end end,
      Image = function(i) img = img or i end,
      Table = function(t) tbl = tbl or t end,
    }
    local inlines = pandoc.utils.blocks_to_inlines(caption.content)
    local id = decoded(div.attributes.label)
    if tbl then return numbered_table(tbl, id, inlines), false end
    img.attributes.alt = decoded(div.attributes.alt)
    return numbered_figure(img, id, inlines), false
  end,
  Figure = function(fig)
    local img
    fig:walk{ Image = function(i) img = i end }
    if not img then return nil end
    return numbered_figure(img, fig.identifier, pandoc.utils.blocks_to_inlines(fig.caption.long)), false
  end,
  Table = function(tbl)
    if #tbl.caption.long > 0 then
      return numbered_table(tbl, tbl.identifier, pandoc.utils.blocks_to_inlines(tbl.caption.long)), false
    end
    if html then return scrolling(tbl), false end
    return tbl, false
  end,
}

-- In Chinese a full-width mark brings its own space along.
local function without_gaps(inlines)
  local out, after_mark = pandoc.Inlines{}, false
  for _, el in ipairs(inlines) do
    if not (after_mark and (el.t == "Space" or el.t == "SoftBreak")) then out:insert(el) end
    local text = stringify(el)
    local last = text:match("[%z\1-\127\194-\244][\128-\191]*$") or ""
    after_mark = last ~= "" and ("。，、；：！？）》」"):find(last, 1, true) ~= nil
  end
  return out
end

-- 4. Sections get numbers, the appendix letters.
local section = { 0, 0, 0 }
local in_appendix = false
local function section_number(h)
  local depth = math.max(1, math.min(3, h.level - 1))
  section[depth] = section[depth] + 1
  for i = depth + 1, 3 do section[i] = 0 end
  local parts = pandoc.List{}
  for i = 1, depth do parts:insert(i == 1 and in_appendix and string.char(64 + section[1]) or tostring(section[i])) end
  return table.concat(parts, ".")
end
local function heading(h)
  if h.level == 2 and h.classes:includes("appendix") and not in_appendix then in_appendix, section = true, { 0, 0, 0 } end
  local number
  if not h.classes:includes("unnumbered") then
    number = section_number(h)
    local named = words.section
    if named == "第" then label_of[h.identifier] = in_appendix and words.appendix .. number or "第 " .. number .. " 节"
    else label_of[h.identifier] = (in_appendix and words.appendix or named) .. "\u{a0}" .. number end
    h.content = pandoc.List{ pandoc.Span({ pandoc.Str(number) }, { class = "secno" }), pandoc.Str("\u{2002}") } .. h.content
  end
  if not html then h.level = math.max(1, h.level - 1) end
  return h
end

-- 5. References to them become links.
local references = {
  Cite = function(c)
    local out, known = pandoc.List{}, 0
    for i, citation in ipairs(c.citations) do
      local label = label_of[citation.id]
      if label then
        known = known + 1
        if i > 1 then out:insert(pandoc.Str(", ")) end
        out:insert(pandoc.Link(label, "#" .. citation.id))
      elseif citation.id:match("^fig%-") or citation.id:match("^tbl%-") or citation.id:match("^sec%-") then
        refuse("refers to unknown @" .. citation.id, "see the labels given to show() and to headings")
      end
    end
    if known == #c.citations then return out end
    if known > 0 then refuse("mixes citations with references in one bracket", "use two brackets") end
  end,
}

local function boxed(class, blocks)
  if html then return pandoc.Blocks{ pandoc.Div(blocks, { class = class }) } end
  return pandoc.Blocks{ pandoc.RawBlock("typst", "#" .. class .. "[") } .. blocks .. pandoc.Blocks{ pandoc.RawBlock("typst", "]") }
end

-- 6. Typst: alternative text, which pandoc's writer drops; only a table of more rows than LONG may part over pages, and
-- what leads to a block of code stays on its page.
local LONG = 16
local alternative = {
  Blocks = function(blocks)
    local out = pandoc.Blocks{}
    for i, block in ipairs(blocks) do
      local leads = block.t == "Para" and blocks[i + 1] and blocks[i + 1].t == "CodeBlock"
      if leads then out:extend(boxed("lead", pandoc.Blocks{ block })) else out:insert(block) end
    end
    return out
  end,
  Math = function(el)
    return pandoc.RawInline("typst", ("#math.equation(block: %s, alt: %s, %s)"):format(
      tostring(el.mathtype == "DisplayMath"), quoted(el.text), typst(pandoc.Inlines{ el })))
  end,
  Table = function(el)
    local rows = 0
    for _, body in ipairs(el.bodies) do rows = rows + #body.body end
    if rows > LONG then return boxed("long", pandoc.Blocks{ el }) end
  end,
  Figure = function(el)
    local img
    el:walk{ Image = function(i) img = i end }
    return pandoc.RawBlock("typst", ("#figure(image(%s, alt: %s), placement: auto, caption: [%s])%s"):format(
      quoted(img.src), quoted(img.attributes.alt), typst(el.caption.long), el.identifier ~= "" and (" <" .. el.identifier .. ">") or ""))
  end,
}

-- The cells, told apart by the markers that markdown.py writes.
local function split(doc)
  local cells, now = {}, { name = "the notebook", tags = {}, blocks = pandoc.Blocks{} }
  for _, block in ipairs(doc.blocks) do
    if block.t == "RawBlock" and block.format == "cell" then
      local lines = {}
      for line in block.text:gmatch("[^\n]+") do lines[#lines + 1] = line end
      now = { name = decoded(lines[1]), tags = {}, blocks = pandoc.Blocks{} }
      for i = 2, #lines do now.tags[lines[i]] = true end
      cells[#cells + 1] = now
    else
      now.blocks:insert(block)
    end
  end
  return cells
end
local function each(cells, filter)
  for _, c in ipairs(cells) do
    cell = c.name
    c.blocks = c.blocks:walk(filter)
  end
end

local function article(doc)
  for name, value in pairs(doc.meta) do
    local word = name:match("^word%-(.*)")
    if word then words[word] = stringify(value) end
  end
  local cells = split(doc)
  each(cells, captions)
  each(cells, native)
  each(cells, safe)
  local first = cells[1]
  if first and first.blocks[1] and first.blocks[1].t == "Header" and first.blocks[1].level == 1 then
    doc.meta.title = pandoc.MetaInlines(first.blocks[1].content)
    first.blocks:remove(1)
    first.is_byline = true
  end
  each(cells, shown)
  each(cells, { Header = heading })
  each(cells, references)
  if words.section == "第" then each(cells, { Inlines = without_gaps }) end
  if not html then each(cells, alternative) end
  local body, cites = pandoc.Blocks{}, false
  for _, c in ipairs(cells) do
    c.blocks:walk{ Cite = function() cites = true end }
    if c.is_byline then doc.meta.byline = pandoc.MetaBlocks(c.blocks)
    elseif c.tags.abstract then
      local so_far = doc.meta.abstract and pandoc.Blocks(doc.meta.abstract) or pandoc.Blocks{}
      doc.meta.abstract = pandoc.MetaBlocks(so_far .. c.blocks)
    elseif c.tags.box then body:extend(boxed("box", c.blocks))
    else body:extend(c.blocks) end
  end
  local has_place = false
  body:walk{ Div = function(d) has_place = has_place or d.identifier == "refs" end }
  if cites and not has_place then
    body:insert(pandoc.Header(html and 2 or 1, words.references, { id = "references", class = "unnumbered" }))
    body:insert(pandoc.Div({}, { id = "refs" }))
  end
  doc.blocks = body
  return doc
end

return { { Pandoc = article } }
