"""Texts without what a stranger must not read: keys, inner addresses, users' names."""

from __future__ import annotations

import getpass
import os
import re
from pathlib import Path
from typing import Any

HIDDEN = "<hidden>"
# PWD alone is the shell's name of the working folder.
SECRET = "KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|SIGNATURE|COOKIE|_PWD|(?-i:pwd)"
SHORTEST = 8  # letters of a value that is hidden wherever it stands: "false" is no key
SHORTEST_NAMED = 6  # and of one in a program that its name calls a key: "<pad>" is none
# Each pattern takes a time proportional to the text's length: it begins at the start of a word
# alone, never gives back what it has read (*+, ++), or reads a limited number of letters.
# What stands behind a name such as NVIDIA_API_KEY, in a variable, an address or a dictionary, or
# behind an option such as --api-key; in quotes it may have blanks.
_NAME = rf"(?<![\w.-])(?=[\w.-]*?(?:{SECRET}))[\w.-]++"
_OPTION = rf"(?<![\w-])(?=\w*+-[\w-]*?(?:{SECRET}))[\w-]++"
_NAMED = re.compile(
    rf"(?i)((?:{_NAME}|[?&]sig)['\"]?\s*+[=:]\s*+|{_OPTION}\s++)"
    r"(\"[^\"]*\"|'[^']*'|[^\s'\",;&]+)"
)
_KEY_BLOCK = re.compile(r"(?s)(-----BEGIN [A-Z ]*KEY-----).*?(?=-----END|\Z)")
# A literal of a program, with the name that it is given: password="...", x["api_key"] = "...".
_LITERAL = re.compile(
    r"""([\w.\[\]'"-]{0,80}\s{0,20}[=:]\s{0,20})?(['"])((?:\\.|(?!\2)[^\\\n])*)\2"""
)
_OF_A_KEY = re.compile(rf"(?i)(?:{SECRET})(?!iz)")  # and not a tokenizer
# Addresses that are a key as a whole: whoever has one may write there.
_HOOK = re.compile(r"((?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)\S+")
# "Bearer abc", and a user with a password in an address.
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_IN_ADDRESS = re.compile(r"((?<!\w)\w++://|(?<![\w.-])(?=[\w.-]++:[^\s/@]{1,200}@))[^\s/]+(?=@)")
_MAIL = re.compile(r"\bgit@[^\s'\"]+|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
# Keys as their makers begin them: OpenAI, GitHub, GitLab, Hugging Face, NVIDIA, AWS, Slack,
# Google, PyPI, npm; and web tokens.
_BY_BEGINNING = re.compile(
    r"\b(?:(?:sk|pk|rk|sdk|nvapi|glpat|xox[a-z]|ghp|gho|ghs|ghu|ghr|github_pat|hf|pypi|npm|ya29|key)"
    r"[-_.][\w.-]{6,}|AKIA\w{12,}|ASIA\w{12,}|AIza[\w-]{20,}|eyJ[\w.-]{10,})"
)
# A long run of letters and digits mixed at random; the name of a card (GPU-...) has hyphens.
_RANDOM = re.compile(r"(?<![\w./-])(?=\w*\d)(?=\w*[A-Za-z])\w{32,}(?![\w./-])")
# RFC 1918, RFC 3927, RFC 4193, RFC 4291 and RFC 6598, and the address of a network card. Not the
# end of a version, such as so.10.3.0.86.
_SHARED = r"100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])"
_ADDRESS = re.compile(
    rf"(?<![\w.])(?<!==)(?:10|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|{_SHARED})"
    r"(?:\.\d{1,3}){2,3}(?![\w.])"
    r"|(?<![\w:])(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):[0-9a-f:]*:[0-9a-f]+"
    r"|(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])"
)
_HOST = re.compile(
    r"(?<![\w-])(?<![\w-]\.)[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|intranet|corp|home\.arpa)\b"
)
_WORD = r"[^/\\\s:;,'\"]+"  # of a name, which under Windows may have several
_USER_FOLDER = re.compile(
    rf"(?i)((?:^|[/\\])(?:home|users?)[/\\]+)(?!~)(?:{_WORD}(?: {_WORD}){{1,3}}(?=[\\'\"])|{_WORD})"
)
# Below none of these the folders of a path are often the names of users and projects. What stands
# behind them is needed: the libraries.
_SYSTEM = (
    "app|bin|boot|content|dev|etc|home|kaggle|lib|lib32|lib64|nix|opt|proc|root|run|sbin|snap|srv|"
    "sys|tmp|usr|Users|var|Applications|Library|System"
)
_LIBRARY = r"/(?:lib|bin|include|share|site-packages|envs|cuda)[\w.-]*(?=[/\s:;,'\"]|$)"
_OTHER_FOLDER = re.compile(
    rf"(?<![\w./\\~<>-])(/(?!(?:{_SYSTEM})(?![\w.-]))[\w.-]+/)[^\s:;,'\"]+?(?={_LIBRARY}|[\s:;,'\"]|$)"
)


def without_secrets(text: str) -> str:
    """Return a text with its keys, inner addresses and users' folders as "<hidden>".

    The own home folder is written "~", and the own name is hidden wherever it is a folder.
    """
    for value in _secret_variables():
        text = text.replace(value, HIDDEN)
    text = _BEARER.sub(HIDDEN, _own_folders(text))
    for pattern in (_KEY_BLOCK, _HOOK, _NAMED, _USER_FOLDER, _IN_ADDRESS, _OTHER_FOLDER):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    for pattern in (_BY_BEGINNING, _RANDOM, _ADDRESS, _MAIL, _HOST):
        text = pattern.sub(HIDDEN, text)
    return text


def code_without_keys(code: str) -> str:
    """Return lines of a program whose literals are hidden that look like a key, or are named so."""

    values = _secret_variables()

    def shown(found: re.Match) -> str:
        name, quote, text = found[1] or "", found[2], found[3]
        patterns = (_KEY_BLOCK, _HOOK, _NAMED, _BEARER, _IN_ADDRESS, _BY_BEGINNING, _RANDOM)
        is_key = any(pattern.search(text) for pattern in patterns)
        is_key = is_key or any(value in text for value in values)
        is_key = is_key or (len(text) >= SHORTEST_NAMED and bool(_OF_A_KEY.search(name)))
        return f"{name}{quote}{HIDDEN}{quote}" if is_key else found[0]

    return _LITERAL.sub(shown, code)


def everything_without_secrets(value: Any) -> Any:
    """Return dictionaries and lists of texts, as JSON has them, without secrets."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: everything_without_secrets(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [everything_without_secrets(each) for each in value]
    return value


def _secret_variables() -> list[str]:
    """Return the values of the variables whose names say that they are keys."""
    named = [name for name in os.environ if re.search(SECRET, name, re.IGNORECASE)]
    return [os.environ[name] for name in named if len(os.environ[name]) >= SHORTEST]


def _own_folders(text: str) -> str:
    try:
        home, user = str(Path.home()), getpass.getuser()
    except (RuntimeError, KeyError, OSError):  # a user without a name
        return text
    if len(home) > 1:  # a container may have given this user the home folder "/"
        text = re.sub(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", "~", text)
    return re.sub(rf"([/\\]){re.escape(user)}(?=[/\\:;,'\"\s]|$)", rf"\1{HIDDEN}", text)
