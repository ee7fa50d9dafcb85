"""`fit` applies every rule of `p4 check`: a program that breaks one does not fit, and says why."""

from html import unescape

import pytest
from forms import Form, text

from gradplane.fit.analysis import FitReport, chip_for, fit
from gradplane.fit.report_text import report_json, report_text
from gradplane.pages.fit_page import page
from gradplane.switch.arch.tna.loading import PREPARE, RULES
from gradplane.switch.compiler import compile_program

DIRECT = (
    "DirectCounter<bit<32>>(CounterType_t.PACKETS) c; action a() { c.count(); }"
    " table t { key = { hdr.n.h0 : exact; } actions = { a; } size = 16; } "
)
CUSTOM = "Hash<bit<32>>(HashAlgorithm_t.CUSTOM) h;"
SYMMETRIC = '@symmetric("hdr.n.w1", "hdr.n.w2") Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;'
ADD = "v = v + 1; o = v;"
BROKEN: dict[str, tuple[Form, str]] = {
    "desugar": (
        {"decl": "MathUnit<bit<32>>(MathOp_t.SQR, 0) mu;", "alu": "v = mu.execute(v); o = v;"},
        "the factor must be above 0",
    ),
    "symmetric_hashes": (
        {"decl": SYMMETRIC, "body": "hdr.n.w0 = h.get({hdr.n.w1, hdr.n.w2});"}, "symmetric",
    ),
    "direct_resources": ({"decl": DIRECT, "body": "t.apply();"}, "of the table that owns"),
    "headers": (
        {
            "types": "header large_t { bit<128> a; bit<128> b; bit<8> c; }",
            "meta": "large_t large;",
            "ddecl": "Mirror() m;",
            "deparse": "if (dprsr.mirror_type == 1) { m.emit(10w5, md.large); }",
        },
        "the header has 264 bits",
    ),
    "results": (
        {"decl": CUSTOM, "body": "hdr.n.w0 = h.get({hdr.n.w1});"},
        "is CUSTOM and has no CRCPolynomial",
    ),
    "cells": (
        {"cell": "bit<24>", "result": "bit<24>", "alu": ADD, "body": "ra.execute(hdr.n.b0);"},
        "has no cells of bit<24>",
    ),
    "bodies": ({"alu": "v = v * 2; o = v;"}, "a stateful ALU cannot multiply"),
    "one_access": (
        {"alu": ADD, "body": "hdr.n.w0 = ra.execute(hdr.n.b0); hdr.n.w1 = ra.execute(hdr.n.b1);"},
        "a second time",
    ),
    "learn_actions": (
        {
            "chip": "tofino2",
            "types": "struct pair_t { bit<64> first; bit<64> second; }",
            "decl": "Register<pair_t, bit<8>>(4) r; LearnAction<pair_t, bit<8>, bit<64>, bit<8>>(r)"
            " learn = { void apply(inout pair_t v, in bit<64> d, in bool learn, out bit<8> o)"
            " { o = 1; } };",
            "body": "hdr.n.b1 = learn.execute(hdr.n.b0);",
        },
        "LearnAction",
    ),
}  # fmt: skip
"""A program for each rule, and the reason for which it is refused."""
REFUSE_NOTHING = {"name_parsers", "lone_registers", "masked_value_sets"}


def test_every_rule_has_a_program_that_breaks_it() -> None:
    rules = {rule.__name__ for rule in (*PREPARE, *RULES)}
    assert rules == BROKEN.keys() | REFUSE_NOTHING


def _report(form: Form) -> FitReport:
    program = compile_program("form.p4", text=text(form))
    return fit(program, chip_for(program), "form.p4")


@pytest.mark.parametrize("rule", BROKEN)
def test_a_program_that_breaks_a_rule_does_not_fit(rule: str) -> None:
    form, reason = BROKEN[rule]
    found = _report(form)
    assert not found.fits
    assert any(reason in refusal.message for refusal in found.refusals), found.refusals
    assert "does not fit" in " ".join(report_text(found, {}).splitlines()[:2])
    assert f"error: {found.refusals[0].message}" in report_text(found, {})
    assert reason in unescape(page(found))
    assert not report_json(found)["fits"]
    assert any(reason in each["what"] for each in report_json(found)["refusals"])


def test_a_program_that_breaks_none_fits() -> None:
    found = _report({"alu": ADD})
    assert found.fits and not found.refusals
    assert report_json(found)["refusals"] == []
