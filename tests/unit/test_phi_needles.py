"""The search for the words of a record finds them in each usual encoding, and nothing else."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest

from tests.support.phi_needles import Needles

WORDS = ("Zylphira", "Vorbrück", "QHV-55120", "02/11/1965")
FORMS: dict[str, Callable[[str], bytes | str]] = {
    "plain": lambda text: text,
    "upper case": str.upper,
    "lower case": str.lower,
    "bytes": str.encode,
    "Latin-1": lambda text: text.encode("latin-1"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "big UTF-16": lambda text: text.upper().encode("utf-16-be"),
    "JSON": json.dumps,
    "HTML": html.escape,
    "URL": quote,
    "whole URL": lambda text: quote(text.lower(), safe=""),
    "query": lambda text: urlencode({"q": text}),
    "form": quote_plus,
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode() + b"!?"),
    "base64 after a byte": lambda text: base64.b64encode(b"#" + text.encode() + b"!?"),
    "base64 after two bytes": lambda text: base64.b64encode(b"##" + text.encode() + b"!?"),
    "base64 after three bytes": lambda text: base64.b64encode(b"###" + text.encode()),
    "URL-safe base64": lambda text: base64.urlsafe_b64encode(text.upper().encode()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_found_in_each_form(word: str, form: str) -> None:
    content = FORMS[form](f"{word}")
    around = (b"<" + content + b">") if isinstance(content, bytes) else f"<{content}>"

    assert Needles(WORDS).found(around) == {word}


def test_words_are_not_found_where_they_are_not() -> None:
    text = "Zylphora Vorbruck QHV 55120 02-11-1965 " + base64.b64encode(b"Zylph ira").decode()

    assert Needles(WORDS).found(text) == set()
