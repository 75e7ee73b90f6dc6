"""Loading: every problem at once with its place, a hash of what is said and not how, and cheap news of changes."""

import os
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.app.policy_files import load, run_tests, stamp
from cpq.base.errors import Code, CpqError
from cpq.domain.policy.files.builder import build
from cpq.domain.policy.files.shapes import FILES
from cpq.domain.yaml_source import BYTES_MAX, UnreadableError, read_document
from tests.support.policies import MINIMAL, SHIPPED, policies, rules

SHIPPED_TEXTS = {name: (SHIPPED / name).read_text(encoding="utf-8") for name in FILES}
WARN = "then: {severity: warning}"


def problems(**files: str) -> list[tuple[str, int, int, str]]:
    """Every problem of the smallest files with some replaced: file, line, column, message."""
    return [(found["file"], found["line"], found["column"], found["message"]) for found in details(**files)]


def details(**files: str) -> list[dict]:
    with pytest.raises(CpqError) as caught:
        policies(**files)
    assert caught.value.code is Code.CONFIGURATION_INVALID
    return caught.value.details["problems"]  # type: ignore[return-value] # A list of mappings.


def ladder(steps: str, over: str = "net", where: str = "") -> str:
    return f"ladders:\n  - id: l\n    over: {over}\n    {where and f'where: {where}'}\n    steps:\n{steps}"


def step(id_: str, bounds: str, then: str = "{severity: warning}") -> str:
    return f"      - {{id: {id_}, {bounds}, then: {then}}}\n"


@pytest.mark.parametrize(
    ("written", "line", "column"),
    [
        ("when: net > 1 and discont > 5", 3, 23),
        ('when: "net > 1 and discont > 5"', 3, 24),
        ("when: 'net > 1 and segment == ''a'' and discont > 5'", 3, 45),
        ('when: "net > 1 and segment == \\"a\\" and discont > 5"', 3, 45),
        ("when: >-\n      net > 1\n      and discont > 5", 5, 11),
        ("when: |\n\n      net > 1 and\n        discont > 5", 6, 9),
        ("when: net > 1\n      and discont > 5", 4, 11),
        ("when:   segment == 'ü😀' and discont > 5", 3, 33),
    ],
)
def test_a_mistake_in_a_condition_is_found_at_its_column_however_yaml_writes_it(written: str, line: int, column: int):
    text = f"rules:\n  - id: a\n    {written}\n    {WARN}\n"
    [found] = details(discounts=text)
    assert found == {
        "file": "discounts.yaml",
        "line": line,
        "column": column,
        "message": "there is no fact discont",
        "nearest": ["discount", "line.discount", "deal_discount"],
    }


def test_every_problem_of_every_file_is_reported_at_once_in_order():
    with pytest.raises(CpqError) as caught:
        policies(
            discounts=rules("discont > 1", "net > 'a'", "margin < 5").replace("sales_manager}", "sales_manger}", 1),
            approvals=MINIMAL["approvals.yaml"] + "rule: []\n",
            pricing='rules: [{id: p, when: "net > 1", then: {markup: 1}}]',
            tax="categories: [standard, saas]\nzones: {DE: {standard: 19, sas: 7}}\n",
        )
    assert caught.value.message == "approvals.yaml, line 2, column 1: there is no field rule here (and 6 more)"
    found = caught.value.details["problems"]
    assert [(problem["file"], problem["line"], problem["column"]) for problem in found] == [  # type: ignore[attr-defined]
        ("approvals.yaml", 2, 1),
        *[("discounts.yaml", line, column) for line, column in [(3, 12), (4, 47), (6, 18)]],
        ("pricing.yaml", 1, 24),
        *[("tax.yaml", 2, 9), ("tax.yaml", 2, 28)],
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("rules:\n  - {id: a, when: net > 1}", 2, 5, "the field then is missing"),
        (f"rules:\n  - {{id: A b, when: net > 1, {WARN}}}", 2, 10,
         "id: string should match pattern '^[a-z][a-z0-9_]*$'"),
        ("rules:\n  - {id: a, when: true, then: {severity: warn}}", 2, 42,
         "severity is one of warning, approval_required, block"),
        ("rules:\n  - {id: a, when: net > 1, then: {severity: block, role: legal}}", 2, 34,
         "then: a role goes with approval_required, and only with it"),
        ("rules:\n  - {id: a, when: net > 1, then: {severity: approval_required}}", 2, 34,
         "then: a role goes with approval_required, and only with it"),
        ("rules:\n  - {id: a, when: net > 1, then: {severity: warning, message: '{net}'}}", 2, 34,
         "then: a message may hold {actual} and {threshold}, and no other braces"),
        (f"rules:\n  - {{id: a, when: net > 1, wen: 1, {WARN}}}", 2, 28, "there is no field wen here"),
        (f"rules:\n  - {{id: a, when: [1], {WARN}}}", 2, 19, "when: input should be a valid string"),
        (f"rules:\n  - {{id: a, when: 5, {WARN}}}", 2, 19, "a condition is true or false, and this is a number"),
        (f"rules:\n  - {{id: a, when: net > 1, threshold: yes, {WARN}}}", 2, 39,
         "threshold: input should be a valid decimal"),
        ("rules: 5", 1, 8, "rules: input should be a valid tuple"),
        ("- a", 1, 1, "the file is a mapping of names to values"),
        ("define: {net: 1 > 2}", 1, 10, "net is already a word of the language"),
        ("define: {any: 1 > 2}", 1, 10, "any is already a word of the language"),
        ("define: {a: discont > 2}", 1, 13, "there is no fact discont"),
        ("define: {a: b, b: net > c, c: a}", 1, 13, "refers to itself: a → b → c → a"),
        ("define: {a: a}", 1, 13, "refers to itself: a → a"),
        ("a: 1\na: 2", 2, 1, "a is given twice, first on line 1"),
        ("a: &x 1\nb: *x", 1, 4, "anchors and aliases are not allowed"),
        ("a: !!python/object:os.system x", 1, 4, "the tag tag:yaml.org,2002:python/object:os.system is not allowed"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document begins"),
        ("a: [1", 2, 1, "not YAML: did not find expected ',' or ']'"),
        ("a: \x01", 1, 1, "not YAML: control characters are not allowed"),
        ("a: " + "[" * 40 + "]" * 40, 1, 15, "nested more than 12 levels deep"),
        ("? [a]\n: 1", 1, 3, "a name is a single word or text"),
    ],
)  # fmt: skip
def test_a_file_of_the_wrong_shape_is_refused_where_it_goes_wrong(text: str, line: int, column: int, message: str):
    assert ("discounts.yaml", line, column, message) in problems(discounts=text)


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_long_chain_of_named_conditions_is_refused_and_hurts_nobody(is_backwards: bool):
    names = range(3000)
    chain = [f"  c{number}: {f'not c{number - 1}' if number else 'net > 1'}" for number in names]
    text = "define:\n" + "\n".join(chain[::-1] if is_backwards else chain) + "\n"
    assert {found[3].partition("more than ")[2] for found in problems(discounts=text)} == {"100 levels deep"}
    short = "define:\n" + "\n".join(chain[:50]) + "\n" + rules("c49")
    assert policies(discounts=short).rules[0].when.reads.keys() == {"net"}


def test_a_condition_that_doubles_with_every_name_is_refused_in_no_time():
    doubling = "\n".join(f"  c{n}: {' or '.join([f'c{n - 1}'] * 99) if n else 'net > 1'}" for n in range(50))
    [found] = problems(discounts=f"define:\n{doubling}\n" + rules("c49 and net > 1"))
    assert found[1:] == (4, 7, "with its named conditions it has more than 2000 parts")


def test_the_nearest_word_is_offered_for_fields_roles_and_values():
    text = "rules:\n  - {id: a, when: true, wen: 1, then: {severity: blok}}\n"
    assert [found["nearest"] for found in details(discounts=text)] == [["when"], ["block"]]
    [found] = details(discounts=rules("net > 1", then="{severity: approval_required, role: finanz}"))
    assert (found["message"], found["nearest"]) == ("there is no role finanz in approvals.yaml", ["finance"])


@pytest.mark.parametrize(
    ("steps", "line", "message"),
    [
        (step("a", "above: 5, up_to: 20") + step("b", "above: 25"), 7, "a gap: no step applies between 20 and 25"),
        (step("a", "above: 5, up_to: 20") + step("b", "above: 15"), 7, "the steps overlap between 15 and 20"),
        (step("a", "above: 20") + step("b", "above: 5"), 7, "the steps overlap: above 5 comes after above 20"),
        (step("a", "above: 5") + step("b", "above: 5"), 7, "the steps overlap: above 5 comes after above 5"),
        (step("a", "above: 5, up_to: 9"), 6, "a gap: no step applies above 9; the last step has no up_to"),
        (step("a", "under: 5, down_to: 3") + step("b", "under: 2"), 7, "a gap: no step applies between 3 and 2"),
        (step("a", "under: 5, down_to: 3") + step("b", "under: 4"), 7, "the steps overlap between 4 and 3"),
        (step("a", "under: 5") + step("b", "under: 6"), 7, "the steps overlap: under 6 comes after under 5"),
        (step("a", "above: 5") + step("b", "under: 3"), 7, "all steps of a ladder have above, or all have under"),
        (step("a", "above: 5, under: 9"), 6, "steps: a step has either above or under"),
        (step("a", "above: 5, down_to: 9"), 6, "steps: up_to goes with above, and down_to with under"),
        (step("a", "above: -1") + step("a", "above: 5"), 7, "the id a is taken by discounts.yaml, line 6"),
        (step("a", "under: 0"), 6, "unreachable: net never has such a value"),
        (step("a", "above: 1", "{severity: block}") + step("b", "above: 5"), 7,
         "contradicts the step before it: warning is milder"),
    ],
)  # fmt: skip
def test_a_ladder_without_order_is_refused(steps: str, line: int, message: str):
    assert (line, message) in [(found[1], found[3]) for found in problems(discounts=ladder(steps))]


def test_a_ladder_never_asks_for_less_farther_up():
    asking = "{{severity: approval_required, role: {}}}".format
    falling = step("a", "above: 1", asking("vp_sales")) + step("b", "above: 5", asking("deal_desk"))
    assert problems(discounts=ladder(falling))[0][3] == (
        "contradicts the step before it: deal_desk has less authority than vp_sales"
    )
    turning = step("a", "above: 1", asking("sales_manager")) + step("b", "above: 5", asking("finance"))
    assert problems(discounts=ladder(turning))[0][3] == (
        "contradicts the step before it: sales_manager would no longer be asked; use a second ladder"
    )


@pytest.mark.parametrize(
    ("over", "where", "column", "message"),
    [
        ("line.discount", "", 0, ""),
        ("line.discount", "line.quantity > 5 and net > 3", 0, ""),
        ("max(line.discount for line in lines)", "net > 3", 0, ""),
        ("segment", "", 11, "a number is expected, and this is a text"),
        ("5", "", 11, "a ladder needs a fact"),
        ("net", "line.quantity > 5", 12,
         "line is known only in a fold, as in any(line.discount > 20 for line in lines)"),
        ("net", "net > 5 and net < 3", 12, "unreachable: this condition can never be true"),
    ],
)  # fmt: skip
def test_a_ladder_stands_on_a_number_of_the_quote_or_of_its_lines(over: str, where: str, column: int, message: str):
    text = ladder(step("a", "above: 5"), over, where)
    if not message:
        policies(discounts=text)
    else:
        [found] = problems(discounts=text)
        assert found[2:] == (column, message)


@pytest.mark.parametrize(
    "condition",
    [
        "false",
        "net > 5 and net < 5",
        "net > 5 and net <= 5",
        "discount > 100",
        "margin > 100",
        "line_count < 0",
        "not (discount <= 100)",
        "5 < discount < 3",
        "segment == 'a' and segment == 'b'",
        "segment in {'a', 'b'} and segment not in {'a', 'b', 'c'}",
        "term_months in {12, 24} and term_months > 24",
        "has_term and not has_term",
        "has_term == true and has_term == false",
        "(net > 5 or gross > 5) and net < 3 and gross < 3",
        "any(line.quantity > 5 and line.quantity < 3 for line in lines)",
        "any(line.quantity > 5 for line in lines if line.quantity < 3)",
        "max(line.discount for line in lines) > 100",
        "net > 5 and any(line.discount < 0 for line in lines)",
    ],
)
def test_a_rule_that_can_never_speak_is_refused(condition: str):
    for files in ({"discounts": rules(condition)}, {"discounts": rules("net > 1") + f'define: {{a: "{condition}"}}\n'}):
        if "define" in files["discounts"]:
            files["discounts"] = files["discounts"].replace('"net > 1"', "a")
        assert problems(**files)[0][3] == "unreachable: this condition can never be true"


def test_a_pricing_rule_that_can_never_apply_is_refused():
    text = "rules: [{id: p, when: \"line.category == 'a' and line.category == 'b'\", then: {markup: 1}}]"
    assert problems(pricing=text) == [("pricing.yaml", 1, 23, "unreachable: this condition can never be true")]


def two(first: str, second: str, then_first: str, then_second: str) -> str:
    return rules(first, then=then_first) + rules(second, then=then_second)[7:].replace("r0", "r1")


APPROVE = "{severity: approval_required, role: sales_manager}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (two("net > 5", "5 < net", "{severity: block}", "{severity: warning}"),
         "contradicts r0 (discounts.yaml, line 2): the same condition, another outcome"),
        (two("net > 5 and gross > 3", "gross > 3 and not net <= 5.0", APPROVE, "{severity: warning}"),
         "contradicts r0 (discounts.yaml, line 2): the same condition, another outcome"),
        (two("net > 5", "net > 5", APPROVE, APPROVE.replace("sales_manager", "vp_sales")),
         "contradicts r0 (discounts.yaml, line 2): the same condition, another outcome"),
        (two("net > 5", "net > 5", APPROVE, APPROVE), "says the same as r0 (discounts.yaml, line 2)"),
        (two("net > 5", "net > 7", "{severity: block}", APPROVE),
         "unreachable: every quote it matches is blocked by r0 (discounts.yaml, line 2)"),
        (two("segment in {'a', 'b'}", "segment == 'a' and net > 5", "{severity: block}", APPROVE),
         "unreachable: every quote it matches is blocked by r0 (discounts.yaml, line 2)"),
    ],
)  # fmt: skip
def test_rules_that_contradict_each_other_are_refused(text: str, message: str):
    assert message in [found[3] for found in problems(discounts=text)]


def test_rules_that_only_overlap_stand_together():
    policies(discounts=two("net > 5", "net > 3", "{severity: block}", APPROVE))
    policies(discounts=two("net > 5", "net > 5", APPROVE, APPROVE.replace("sales_manager", "finance")))
    policies(discounts=two("net > 5 and gross > 3", "net > 7", "{severity: block}", APPROVE))


def test_pricing_rules_of_the_same_condition_are_refused():
    rule = '{{id: {}, when: "line.quantity > 5", then: {}}}'
    text = f"rules: [{rule.format('a', '{markup: 1}')}, {rule.format('b', '{markup: 2}')}]"
    assert problems(pricing=text)[0][3] == "contradicts a (pricing.yaml, line 1): the same condition, twice"
    policies(pricing=text.replace("{markup: 2}", "{percentage: 2}"))


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ("{}", "then: exactly one of markup, percentage, amount"),
        ("{markup: 1, amount: 2}", "then: exactly one of markup, percentage, amount"),
        ("{markup: 1, base: unit}", "then: the base is list or running"),
        ("{amount: 1, base: list}", "then: the base is unit or line"),
        ("{markup: -1}", "markup: input should be greater than or equal to 0"),
        ("{percentage: -101}", "percentage: input should be greater than or equal to -100"),
        ("{markup: 1, stacking: silent}", "stacking is one of sequential, best_of"),
    ],
)
def test_an_adjustment_says_exactly_what_it_does(then: str, message: str):
    assert problems(pricing=f"rules: [{{id: p, when: true, then: {then}}}]")[0][3] == message


def test_an_id_is_given_once_over_all_files():
    found = problems(
        discounts=rules("net > 1"),
        approvals=MINIMAL["approvals.yaml"] + rules("gross > 1"),
        pricing="rules: [{id: r0, when: true, then: {markup: 1}}]",
    )
    assert [(file, message) for file, _, _, message in found] == [
        ("approvals.yaml", "the id r0 is taken by discounts.yaml, line 2"),
        ("pricing.yaml", "the id r0 is taken by discounts.yaml, line 2"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("currency: USD", "currency: XXX"), "currency: is not an ISO 4217 currency code"),
        (("EUR: 1.10", "EUR: 0"), "EUR: input should be greater than 0"),
        (("EUR: 1.10", "EUR: 1.10, USD: 2"), "terms.yaml: the rate of USD, the policy's own currency, is 1"),
        (("[net_30]", "[]"), "standard_payment_terms: tuple should have at least 1 item after validation, not 0"),
        (("validity_days: 30", "validity_days: 0"), "validity_days: input should be greater than or equal to 1"),
        (("absent: false", "absent: 1"), "export_controlled: absent is a boolean"),
        (("currency: USD", "currency: USD\nrounding: up"), "rounding is one of half_up, half_even"),
    ],
)
def test_terms_out_of_bounds_are_refused(change: tuple[str, str], message: str):
    assert message in [found[3] for found in problems(terms=MINIMAL["terms.yaml"].replace(*change))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("categories: [a, b]\nzones: {DE: {a: 1}}", "DE has no rate for b"),
        ("categories: [a]\nzones: {DE: {a: 1, c: 1}}", "c is not among the categories"),
        ("categories: [a]\nzones: {DE: 101}", "DE: input should be less than or equal to 100"),
        ("categories: [a]\nzones: {germany: 1}", "string should match pattern"),
        ("categories: [a]\nzones: {US*: 1}", "string should match pattern"),
        ("categories: [a]", "the field zones is missing"),
        ("categories: [a]\nzones: {DE: {rate: 0, code: X}}", "code is one of S, Z, E, AE, K, G, O"),
        ("categories: [a]\nzones: {DE: {a: {rate: 0, code: X}}}", "code is one of S, Z, E, AE, K, G, O"),
        ("categories: [a]\nzones: {DE: {a: {rate: 0, cod: G}}}", "there is no field cod here"),
        ("categories: [a]\nzones: {DE: {rate: 0, code: S}}", "S goes with a rate above 0, every other code with 0"),
        ("categories: [a]\nzones: {DE: {rate: 7, code: Z}}", "S goes with a rate above 0, every other code with 0"),
        ("categories: [a]\nzones: {DE: {code: G}}", "the field rate is missing"),
        ("categories: [a]\nzones: {DE: {rate: 0, code: G}}", "a reason goes with E, AE, K, G and O"),
        ("categories: [a]\nzones: {DE: {rate: 19, reason: No}}", "a reason goes with E, AE, K, G and O"),
        (
            "categories: [a, b]\nzones: {DE: {a: {rate: 0, code: O, reason: No}, b: 7}}",
            "DE has O and other codes; what is outside the scope of tax is quoted alone",
        ),
        ("categories: [a]\nzones: {CA-QC: {taxes: [{name: GST, rate: 5}]}}", "at least 2 items"),
        ("categories: [a]\nzones: {CA-QC: {taxes: [{name: G, rate: 5}, {name: Q}]}}", "the field rate is missing"),
        ("categories: [a]\nzones: {CA-QC: {taxes: [{name: G, rate: 5}, {name: G, rate: 1}]}}", "two taxes G"),
        (
            "categories: [a]\nzones: {CA-QC: {taxes: [{name: G, rate: 5}, {name: Q, rate: 1, on_top_of: [P]}]}}",
            "Q is on top of P, which is no tax before it",
        ),
        (
            "categories: [a]\nzones: {CA-QC: {taxes: [{name: G, rate: {c: 5}}, {name: Q, rate: 1}]}}",
            "c is not among the categories",
        ),
        (
            "categories: [a, b]\nzones: {CA-QC: {taxes: [{name: G, rate: {a: 5}}, {name: Q, rate: {a: 1}}]}}",
            "CA-QC has no rate for b",
        ),
        ("categories: [a]\nzones: {CA-QC: {taxes: [{name: G, rate: 101}, {name: Q, rate: 1}]}}", "less than or equal"),
    ],
)
def test_tax_has_a_rate_for_every_category_of_every_zone(text: str, message: str):
    assert any(message in found[3] for found in problems(tax=text))


def test_a_zone_not_named_has_the_rate_of_its_country():
    policy_set = policies(tax="categories: [a]\nzones: {US-*: 3, US-OH: 0, DE: 19}")
    assert [policy_set.tax_rate(zone, "a").rate for zone in ("US-OH", "US-NY", "DE")] == [0, 3, 19]


def test_a_mistake_in_a_code_is_found_where_it_is_written():
    tax = "categories: [a, b]\nzones:\n  DE:\n    a: 19\n    b: {rate: 0, code: GG}\n"
    (found,) = problems(tax=tax)
    assert found[1:3] == (5, 24)


def test_a_rate_has_a_code_that_follows_from_it_unless_the_policy_gives_one():
    tax = "categories: [a, b, c]\nzones: {DE: {a: 19, b: 0, c: {rate: 0, code: K, reason: Delivered abroad}}}"
    rates = policies(tax=tax).tax_rates("DE")
    assert {name: (rate.code, rate.reason) for name, rate in rates.items()} == {
        "a": ("S", None),
        "b": ("Z", None),
        "c": ("K", "Delivered abroad"),
    }


def test_g09_several_taxes_have_one_rate_together_and_their_order_counts():
    zone = "{taxes: [{name: GST, rate: 5}, {name: QST, rate: {a: 9.5}, on_top_of: [GST]}]}"
    found = policies(tax=f"categories: [a, b]\nzones: {{CA-QC: {zone}, US-GA-FULTON: 7}}")
    rates = found.tax_rates("CA-QC")
    assert (rates["a"].rate, str(rates["a"])) == (Decimal("14.975"), "GST 5 + QST 9.5 on GST")
    assert (rates["b"].rate, str(rates["b"])) == (Decimal(5), "GST 5")
    assert found.tax_rate("US-GA-FULTON", "a").rate == 7
    one, other = (
        policies(tax=f"categories: [a]\nzones: {{CA-QC: {{taxes: [{taxes}]}}}}")
        for taxes in ("{name: G, rate: 5}, {name: Q, rate: 9}", "{name: Q, rate: 9}, {name: G, rate: 5}")
    )
    assert one.content_hash != other.content_hash


def test_writing_the_code_that_follows_anyway_is_no_other_tax():
    plain, written = (policies(tax=f"categories: [a]\nzones: {{DE: {rate}}}") for rate in ("19", "{rate: 19, code: S}"))
    assert plain.tax == written.tax


def test_a_missing_and_an_unknown_file_are_problems(tmp_path: Path):
    shutil.copytree(SHIPPED, tmp_path / "policies")
    folder = tmp_path / "policies"
    (folder / "discounts.yaml").rename(folder / "dicounts.yaml")
    (folder / "tax.yaml").write_bytes(b"zones:\n  \xff: 1\n")
    with pytest.raises(CpqError, match=r"tax.yaml, line 2, column 1: not UTF-8 text"):
        load(folder)
    shutil.copy(SHIPPED / "tax.yaml", folder)
    with pytest.raises(CpqError) as caught:
        load(folder)
    found = caught.value.details["problems"]
    assert isinstance(found, list)
    [strange, missing] = found
    assert strange["message"] == "dicounts.yaml is not a policy file"
    assert strange["nearest"][0] == "discounts.yaml"
    assert missing == {
        "file": "discounts.yaml",
        "line": 1,
        "column": 1,
        "message": "the file discounts.yaml is missing",
    }
    with pytest.raises(CpqError, match="There is no folder of policies 'nowhere'"):
        load(tmp_path / "nowhere")


def test_a_huge_file_is_refused_unread(tmp_path: Path):
    shutil.copytree(SHIPPED, tmp_path / "policies")
    (tmp_path / "policies" / "discounts.yaml").write_text("#" * (BYTES_MAX + 10))
    with pytest.raises(CpqError, match="such a file has at most 4 MB"):
        load(tmp_path / "policies")


@given(st.text(max_size=80) | st.text("abc:[]{}-&*!|>#'\" \n\t0", max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str):
    try:
        root = read_document("x.yaml", text).root
    except UnreadableError as error:
        place = error.problem.line, error.problem.column
    else:
        place = root.mark.line, root.mark.column
    assert place >= (1, 1)


@st.composite
def damaged_files(draw: st.DrawFn) -> dict[str, str]:
    """The shipped files with a piece of one of them cut out, doubled, or replaced."""
    file = draw(st.sampled_from(sorted(SHIPPED_TEXTS)))
    text = SHIPPED_TEXTS[file]
    start = draw(st.integers(0, len(text) - 1))
    end = draw(st.integers(start, min(start + 40, len(text))))
    new = draw(
        st.sampled_from(["", text[start:end] * 2, "- ", ": ", "[", "{", "0", "'", "null", "a: b\n", "\n"])
        | st.text(max_size=5)
    )
    return SHIPPED_TEXTS | {file: text[:start] + new + text[end:]}


@given(texts=damaged_files())
def test_a_damaged_file_loads_or_is_refused_with_places_inside_it(texts: dict[str, str]):
    try:
        build(texts)
    except CpqError as error:
        refused = error
    else:
        return
    assert refused.code is Code.CONFIGURATION_INVALID
    found = refused.details["problems"]
    assert isinstance(found, list)
    for problem in found:
        lines = texts[problem["file"]].splitlines()
        assert 1 <= problem["line"] <= len(lines) + 1
        assert problem["column"] >= 1


RELAID = {
    "comments": lambda text: "# A word.\n" + text.replace("\nrules:", "\n# Another.\nrules: # Here."),
    "blanks in conditions": lambda text: text.replace(
        "margin < 10", "( margin<10 )".replace("( ", "").replace(" )", "")
    ),
    "blank lines": lambda text: text.replace("\n  - id", "\n\n\n  - id"),
    "quotes": lambda text: text.replace("when: margin < 10", 'when: "margin < 10"').replace(
        "above: 5\n", 'above: "5"\n'
    ),
    "digits": lambda text: text.replace("above: 5\n", "above: 5.00\n"),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "key order": lambda text: text.replace("        above: 20\n", "").replace(
        "      - id: discount_cap_vp_sales\n", "      - above: 20\n        id: discount_cap_vp_sales\n"
    ),
    "a default said aloud": lambda text: text.replace("when: margin < 10", "when: margin < 10\n    priority: 0"),
}


@pytest.mark.parametrize("name", RELAID)
def test_comments_layout_and_the_order_of_keys_do_not_change_the_hash(name: str):
    changed = {file: RELAID[name](text) for file, text in SHIPPED_TEXTS.items()}
    assert changed != SHIPPED_TEXTS
    assert build(changed).content_hash == build(SHIPPED_TEXTS).content_hash


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("discounts.yaml", "above: 5\n", "above: 5.000001\n"),
        ("discounts.yaml", "role: finance", "role: legal"),
        ("discounts.yaml", "id: discount_review\n", "id: discount_reviews\n"),
        ("discounts.yaml", "% is above {threshold} %.", "% is over {threshold} %."),
        ("approvals.yaml", "margin < 10", "margin <= 10"),
        ("approvals.yaml", "margin < 10", "margin < 10.1"),
        ("approvals.yaml", "ask: highest", "ask: each"),
        ("approvals.yaml", "[finance, legal]", "[legal, finance]"),
        ("approvals.yaml", "name: export control", "name: export controls"),
        ("terms.yaml", "validity_days: 30", "validity_days: 31"),
        ("terms.yaml", "EUR: 1.08", "EUR: 1.09"),
        ("terms.yaml", "absent: false", "absent: true"),
        ("pricing.yaml", "markup: 6", "markup: 7"),
        ("pricing.yaml", "stacking: best_of", "stacking: sequential"),
        ("tax.yaml", "DE: 19", "DE: 20"),
        ("tax.yaml", "US-GA", "US-AL"),
    ],
)
def test_any_change_of_what_is_said_changes_the_hash(file: str, old: str, new: str):
    assert old in SHIPPED_TEXTS[file]
    changed = SHIPPED_TEXTS | {file: SHIPPED_TEXTS[file].replace(old, new, 1)}
    assert build(changed).content_hash != build(SHIPPED_TEXTS).content_hash


@settings(max_examples=50)
@given(numbers=st.lists(st.decimals(1, 1000, places=3), min_size=2, max_size=2))
def test_two_sets_have_one_hash_exactly_when_they_say_the_same(numbers: list):
    one, other = (policies(discounts=rules(f"net > {number:f}")).content_hash for number in numbers)
    assert (one == other) is (f"{numbers[0]:f}" == f"{numbers[1]:f}")


def test_a_stamp_changes_with_every_edit_and_only_then(tmp_path: Path):
    folder = tmp_path / "policies"
    shutil.copytree(SHIPPED, folder)
    first = stamp(folder)
    assert stamp(folder) == first
    path = folder / "discounts.yaml"
    status = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("above: 5", "above: 6"), encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    second = stamp(folder)
    assert second != first
    replacement = folder / "new"
    shutil.copy(path, replacement)
    os.utime(replacement, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    replacement.rename(path)
    assert stamp(folder) != second
    (folder / "note.txt").write_text("not a policy")
    assert len(stamp(folder)) == len(first)


def test_a_case_that_fails_says_what_was_expected(tmp_path: Path):
    folder = tmp_path / "policies"
    shutil.copytree(SHIPPED, folder)
    (folder / "tax_test.yaml").write_text("rates:\n  - {zone: DE, category: saas, rate: 7}\n")
    (folder / "terms_test.yaml").write_text("terms: {validity_days: 31}\n")
    (folder / "pricing_test.yaml").write_text(
        "adjustments:\n  - {name: p, quote: {region: apac}, line: {category: services}, adjustments: []}\n"
        "  - {name: q, quote: {region: apac}, line: {category: services},\n"
        "     adjustments: [{id: apac_field_service, value: 7}]}\n"
    )
    (folder / "approvals_test.yaml").write_text("decisions: [{name: a, facts: {margin: 5}, violations: []}]")
    (folder / "discounts_test.yaml").write_text(
        "decisions:\n"
        "  - {name: b, facts: {lines: [{discount: 6}]}, violations: [{id: discount_cap_sales_manager, actual: 7}]}\n"
        "  - {name: c, facts: {lines: [{discount: 6}]}, violations: [discount_cap_sales_manager], roles: [legal]}\n"
        "  - {name: d, violations: [], blocked: true}\n"
    )
    assert [tuple(result) for result in run_tests(folder)] == [
        ("approvals_test.yaml", 1, "a", "expected none, got margin_floor_finance"),
        ("discounts_test.yaml", 2, "b", "discount_cap_sales_manager: expected actual 7, got 6"),
        ("discounts_test.yaml", 3, "c", "expected the roles legal, got sales_manager"),
        ("discounts_test.yaml", 4, "d", "expected a block"),
        ("pricing_test.yaml", 2, "p", "expected none, got apac_field_service"),
        ("pricing_test.yaml", 3, "q", "apac_field_service: expected value 7, got 6"),
        ("tax_test.yaml", 2, "saas in DE", "expected 7, got 19"),
        ("terms_test.yaml", 1, "validity_days", "expected 31, got 30"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("decisions:\n  - {name: a, facts: {discont: 1}, violations: []}", 2,
         "discont is not a fact that a case can give"),
        ("decisions:\n  - {name: a, facts: {net_value: 1}, violations: []}", 2,
         "net_value is not a fact that a case can give"),
        ("decisions:\n  - {name: a, facts: {net: x}, violations: []}", 2, "net has another type"),
        ("decisions:\n  - {name: a, facts: {lines: [{net: x}]}, violations: []}", 2, "net has another type"),
        ("decisions:\n  - {name: a, facts: {lines: 5}, violations: []}", 2, "lines is a list of mappings"),
        ("decisions:\n  - {name: a}", 2, "the field violations is missing"),
        ("adjustments:\n  - {name: a, line: {net: 5}, adjustments: []}", 2, "net is not a fact that a case can give"),
        ("terms: {validity: 5}", 1, "there is no term validity"),
        ("terms: [", 2, "not YAML: did not find expected node content"),
    ],
)  # fmt: skip
def test_a_case_that_makes_no_sense_is_a_problem_with_its_place(tmp_path: Path, text: str, line: int, message: str):
    folder = tmp_path / "policies"
    shutil.copytree(SHIPPED, folder)
    (folder / "discounts_test.yaml").write_text(text)
    with pytest.raises(CpqError) as caught:
        run_tests(folder)
    assert caught.value.code is Code.CONFIGURATION_INVALID
    found = [(problem["line"], problem["message"]) for problem in caught.value.details["problems"]]  # type: ignore[attr-defined]
    assert found == [(line, message)]


def roles(more: str) -> str:
    return "roles:\n  commercial: [sales_manager, deal_desk, vp_sales]\n  orthogonal: [finance, legal]\n" + more


def test_roles_say_how_they_decide():
    found = policies(
        approvals=roles(
            "  quorum: {finance: majority, legal: all, vp_sales: 2, deal_desk: one}\n"
            "  backup: {sales_manager: deal_desk, legal: finance}\n"
            "  escalate_to: {deal_desk: {to: vp_sales, after_hours: 2}, legal: {to: vp_sales, after_hours: 0}}\n"
            "  keep: {legal: false}\n"
        )
    ).roles
    assert found.quorum == {"finance": "majority", "legal": "all", "vp_sales": 2, "deal_desk": "one"}
    assert found.backup == {"sales_manager": "deal_desk", "legal": "finance"}
    assert found.escalate_to == {"deal_desk": ("vp_sales", 2), "legal": ("vp_sales", 0)}
    assert found.keep == {"legal": False}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("  quorum: {finanz: all}", 12, "there is no role finanz in approvals.yaml"),
        ("  quorum: {finance: most}", 21, "finance is one of one, all, majority"),
        ("  quorum: {finance: 0}", 21, "finance is one of one, all, majority"),
        ("  backup: {deal_desk: vp_sale}", 23, "there is no role vp_sale in approvals.yaml"),
        ("  backup: {deal_desk: sales_manager}", 23, "sales_manager has less authority than deal_desk"),
        ("  backup: {deal_desk: finance}", 23, "finance has less authority than deal_desk"),
        ("  backup: {legal: sales_manager}", 19, "sales_manager has less authority than legal"),
        ("  backup: {legal: legal}", 19, "legal cannot stand in for itself"),
        (
            "  escalate_to: {vp_sales: {to: deal_desk, after_hours: 1}}",
            32,
            "deal_desk has less authority than vp_sales",
        ),
        ("  escalate_to: {vp_sales: {to: deal_desk}}", 27, "the field after_hours is missing"),
        ("  keep: {legal: maybe}", 17, "legal: input should be a valid boolean"),
        ("  keep: {leagl: false}", 10, "there is no role leagl in approvals.yaml"),
    ],
)
def test_a_role_that_is_not_there_or_has_less_authority_takes_no_decision(text: str, column: int, message: str):
    assert problems(approvals=roles(text)) == [("approvals.yaml", 4, column, message)]
