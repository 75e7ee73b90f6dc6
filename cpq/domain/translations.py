"""Texts of the catalogue in other languages: their locales, how a file writes them, and which one a reader gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

Text = TypeVar("Text")

PRODUCT_TEXTS = {"name": "names", "description": "descriptions"}
CATEGORY_TEXTS = {"name": "names"}
OPTION_TEXTS = {"label": "labels", "values": "value_names"}
"""What a file calls a text, `name.de`, and the field that holds it in all locales, `names`."""


def canonical(locale: str) -> str | None:
    """The BCP-47 tag of a locale in its usual spelling: `de_at` is `de-AT`. None if there is no such language."""
    found = _TAG.fullmatch(locale)
    if found is None or found[1].lower() not in _LANGUAGES:
        return None
    language, script, region = found.groups()
    return "-".join(filter(None, (language.lower(), (script or "").title(), (region or "").upper())))


def lookup(locale: str) -> tuple[str, ...]:
    """The locales whose texts a reader of this one gets, the best first: `de_AT` is de-AT, then de (RFC 4647)."""
    parts = (canonical(locale) or "").split("-")
    return tuple("-".join(parts[:count]) for count in range(len(parts), 0, -1) if parts[0])


def found_locale(texts: Mapping[str, object], tags: tuple[str, ...]) -> str | None:
    return next((tag for tag in tags if tag in texts), None)


def translated(texts: Mapping[str, Text], tags: tuple[str, ...], untranslated: Text) -> Text:
    """The text in the best of these locales, else the untranslated one."""
    tag = found_locale(texts, tags) if texts else None
    return untranslated if tag is None else texts[tag]


def gathered(values: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """A row of a file with `name.de` and `name.fr` as `names`. What does not fit stays, as an unknown field."""
    found = {name: value for name, value in values.items() if name.partition(".")[0] not in texts or "." not in name}
    for name in [name for name in values if name not in found]:
        text, _, tag = name.partition(".")
        together = found.setdefault(texts[text], {})
        if isinstance(together, dict) and tag not in together:
            found[texts[text]] = {**together, tag: values[name]}
        else:
            found[name] = values[name]
    return found


def spread(values: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The opposite: the row as a file writes it, locales in their order."""
    by_field = {field: text for text, field in texts.items()}
    for name, value in values.items():
        if name in by_field:
            yield from ((f"{by_field[name]}.{tag}", text) for tag, text in sorted(value.items()))
        else:
            yield name, value


def as_written(field: str) -> str:
    """The field of a problem as the file writes it: `names.de` is `name.de`."""
    found = _FIELD.fullmatch(field)
    return f"{found[1] or ''}{_WRITTEN[found[2]]}.{found[3]}" if found else field


_TAG = re.compile(r"([A-Za-z]{2,3})(?:[_-]([A-Za-z]{4}))?(?:[_-]([A-Za-z]{2}|[0-9]{3}))?")
_WRITTEN = {field: text for text, field in (*PRODUCT_TEXTS.items(), *OPTION_TEXTS.items())}
_FIELD = re.compile(rf"(options\.[^.]+\.)?({'|'.join(_WRITTEN)})\.(.+)")
_CLDR = (
    "aa ab af agq ak am an ann apc ar arn as asa ast az ba bal bas be bem bew bez bg bgc bgn bho blo blt bm bn bo "
    "br brx bs bss byn ca cad cch ccp ce ceb cgg cho chr cic ckb co cop cs csw cu cv cy da dav de dje doi dsb dua "
    "dv dyo dz ebu ee el en eo es et eu ewo fa ff fi fil fo fr frr fur fy ga gaa gd gez gl gn gsw gu guz gv ha "
    "haw he hi hnj hr hsb ht hu hy ia id ie ig ii io is it iu ja jbo jgo jmc jv ka kaa kab kaj kam kcg kde kea "
    "ken kgp khq ki kk kkj kl kln km kn ko kok kpe ks ksb ksf ksh ku kw kxv ky la lag lb lg lij lkt lld lmo ln lo "
    "lrc lt ltg lu luo luy lv mai mas mdf mer mfe mg mgh mgo mhn mi mic mk ml mn mni moh mr ms mt mua mus my myv "
    "mzn naq nb nd nds ne nl nmg nn nnh no nqo nr nso nus nv ny nyn oc om or os osa pa pap pcm pis pl prg ps pt "
    "qu quc raj rhg rif rm rn ro rof ru rw rwk sa sah saq sat sbp sc scn sd sdh se seh ses sg shi shn si sid sk "
    "skr sl sma smj smn sms sn so sq sr ss ssy st su sv sw syr szl ta te teo tg th ti tig tk tn to tok tpi tr trv "
    "trw ts tt twq tyv tzm ug uk ur uz vai ve vec vi vmw vo vun wa wae wal wbp wo xh xnr xog yav yi yo yrl yue za "
    "zgh zh zu "
)
"""The languages of the Unicode CLDR. Written out: loading the library that has them would slow every command."""

_LANGUAGES = frozenset(_CLDR.split())
