"""The policy engine in CPU time: plain rules over many quotes, a large quote under many rules, and a large load."""

import itertools
import operator
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

from cpq.app.policy_files import load
from cpq.base.settings import shipped
from cpq.domain.policy.evaluation import evaluate
from cpq.domain.policy.facts import LineFacts, QuoteFacts
from cpq.domain.policy.files.builder import build
from cpq.domain.policy.files.shapes import FILES
from cpq.domain.policy.policy_set import PolicySet
from tests.bench.engines import as_plain, engines

TWENTY = (
    "discount > 15",
    "discount > 25",
    "discount > 35 and segment != 'enterprise'",
    "margin < 10",
    "margin < 20 and discount > 10",
    "net_value > 100000",
    "net_value > 250000",
    "net_value > 500000",
    "total > 600000",
    "term_months > 36",
    "term_months > 60",
    "not is_standard_terms",
    "region == 'apac' and discount > 12",
    "country in {'IR', 'KP', 'SY'}",
    "segment == 'smb' and net > 200000",
    "validity_days > 60",
    "gross - net > 90000",
    "currency not in {'USD', 'EUR', 'GBP', 'JPY'}",
    "discount_off_list > 40",
    "discount > 5 and margin < 30 and term_months < 12",
)
QUOTES = 10_000
RULES_ON_A_LARGE_QUOTE = 200
LINES = 100
RULES_TO_LOAD = 2000
COMPARED = 1_000


def measure() -> dict[str, float]:
    few, facts = with_rules(TWENTY), list(islice(quotes(), QUOTES))
    seconds = cpu_seconds(lambda: deque((evaluate(few, quote) for quote in facts), maxlen=0))
    many = with_rules(islice(conditions(), RULES_ON_A_LARGE_QUOTE), shipped_too=True)
    large = large_quote()
    evaluate(many, large)
    rounds = 50
    large_seconds = cpu_seconds(lambda: [evaluate(many, large) for _ in range(rounds)]) / rounds
    loading = cpu_seconds(lambda: with_rules(islice(conditions(), RULES_TO_LOAD)))
    return {
        "rule evaluations M/s": len(TWENTY) * QUOTES / seconds / 1_000_000,
        "20 rules, a quote µs": seconds / QUOTES * 1_000_000,
        f"{RULES_ON_A_LARGE_QUOTE} rules, {LINES} lines ms": large_seconds * 1000,
        f"load {RULES_TO_LOAD:,} rules s": loading,
        "load the shipped policies ms": cpu_seconds(lambda: load(shipped("policies"))) * 1000,
        **compare("20 rules", TWENTY, facts[:COMPARED]),
        **compare(
            f"{RULES_ON_A_LARGE_QUOTE} rules, {LINES} lines",
            list(islice(conditions(), RULES_ON_A_LARGE_QUOTE)),
            [large],
        ),
    }


def compare(name: str, texts: Sequence[str], facts: Sequence[QuoteFacts]) -> dict[str, float]:
    """The same rules elsewhere, over our time, which includes telling who is to blame and what it rests on."""
    ours = with_rules(texts)
    ids = [f"bench_{number}" for number in range(len(texts))]
    seconds = cpu_seconds(lambda: [evaluate(ours, quote) for quote in facts])
    fired = [{violation.policy_id for violation in evaluate(ours, quote).violations} for quote in facts]
    results = {}
    for engine, prepare, given in engines():
        decide, plain = prepare(texts), [given(as_plain(ours, quote)) for quote in facts]
        answers = [decide(quote) for quote in plain]
        theirs = [{id_ for id_, answer in zip(ids, each, strict=True) if answer} for each in answers]
        results[f"{name}: {engine} / ours"] = cpu_seconds(partial(_all, decide, plain)) / seconds
        results[f"{name}: {engine}, decided otherwise"] = sum(map(operator.ne, fired, theirs))
    return results


def _all(decide: Callable[[Any], object], facts: Sequence[Any]) -> None:
    for quote in facts:
        decide(quote)


def with_rules(texts: Iterable[str], *, shipped_too: bool = False) -> PolicySet:
    """A set of rules with these conditions, with or without the shipped guards."""
    files = {file: (shipped("policies") / file).read_text(encoding="utf-8") for file in FILES}
    written = "".join(
        f'  - id: bench_{number}\n    when: "{text}"\n    then: {{severity: warning}}\n'
        for number, text in enumerate(texts)
    )
    if not shipped_too:
        files["approvals.yaml"] = files["approvals.yaml"].partition("\nladders:")[0]
        files["discounts.yaml"] = "{}"
    files["terms.yaml"] += f"\nrules:\n{written}"
    return build(files)


def conditions() -> Iterator[str]:
    """As many different conditions as wanted; half of them look at every line."""
    for number in itertools.count(1):
        yield f"discount > {number / 100 % 90:.2f} and net_value > {number}"
        yield f"any(line.discount > {50 + number / 100 % 50:.2f} for line in lines) and net > {number}"
        yield f"margin < {number % 30} and segment != 'segment_{number}'"
        yield f"any(line.quantity > {number} and line.category == 'saas' for line in lines)"


def quotes() -> Iterator[QuoteFacts]:
    """Ordinary quotes that differ: most of them break no rule, some break several."""
    for number in itertools.count():
        yield QuoteFacts(
            currency=("USD", "EUR", "GBP", "JPY")[number % 4],
            term_months=Decimal((12, 24, 36, 48)[number % 4]),
            payment_terms="net_90" if number % 50 == 0 else "net_30",
            segment=("smb", "mid_market", "enterprise")[number % 3],
            region=("americas", "emea", "apac")[number % 3],
            country="US",
            gross=Decimal(number * 11),
            net=Decimal(number * 10),
            total=Decimal(number * 12),
            discount=Decimal(number % 180) / 10,
            discount_off_list=Decimal(number % 300) / 10,
            margin=Decimal(20 + number % 60),
            lines=(LineFacts(line_id="1", discount=Decimal(number % 180) / 10, margin=Decimal(30)),),
        )


def large_quote() -> QuoteFacts:
    lines = [
        LineFacts(
            line_id=str(number),
            category=("saas", "compressors")[number % 2],
            quantity=Decimal(number + 1),
            discount=Decimal(number % 40) / 10,
            margin=Decimal(40),
        )
        for number in range(LINES)
    ]
    return QuoteFacts(net=Decimal(50_000), gross=Decimal(60_000), margin=Decimal(40), lines=tuple(lines))


def cpu_seconds(work: Callable[[], object]) -> float:
    """The best of a few: another process on the core costs CPU time, too."""
    return min(_once(work) for _ in range(5))


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
