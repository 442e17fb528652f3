import pytest

from prefixkit.errors import ProbeError
from prefixkit.probe.keys import clean_key


@pytest.mark.parametrize("given", ["sk-x", " sk-x\n", "sk-x\r\n", "Bearer sk-x", "bearer  sk-x ", '"sk-x"', "'sk-x'"])
def test_what_is_certainly_not_part_of_a_key_is_taken_off(given):
    assert clean_key(given, "MY_KEY") == "sk-x"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("Bearer ", "is empty"),
        ("sk-aaa\nbbb", "holds a line break"),
        ("sk-aaa bbb", "holds a blank"),
        ("sk-aaa\x00bbb", "holds a blank or a control character"),
        ("sk-aa...bb", "shortened form"),
        ("sk-aa…bb", "shortened form"),
        ("sk-aa****bb", "shortened form"),
        ("sk-aaä", "outside ASCII"),
    ],
)
def test_a_key_that_no_server_can_accept_is_refused_without_being_repeated(given, said):
    with pytest.raises(ProbeError) as caught:
        clean_key(given, "MY_KEY")
    assert said in str(caught.value) and "MY_KEY" in str(caught.value)
    assert "aa" not in str(caught.value) and caught.value.exit_code == 2
