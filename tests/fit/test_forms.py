"""Forms by themselves (forms.toml): gradplane's verdict is that of the chip's compiler.

`first` is gradplane's verdict before the compiler had seen the form, `guess` a person's; `compiler`
and `reason` are from bf-p4c of p4c 1.2.5.16. `differs` says why gradplane still answers otherwise.
`memory`: the blocks in the compiler's assembly file. With p4c-barefoot on PATH, every tenth form
goes to it again; with GRADPLANE_FORMS=all every one, which takes most of an hour.
"""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from forms import Form, chip, forms, memory, text, verdict

COMPILER = shutil.which("p4c-barefoot")
FORMS = [form for form in forms() if "compiler" in form]
TO_COMPILE = FORMS if os.environ.get("GRADPLANE_FORMS") == "all" else FORMS[::10]
DOCS = Path(__file__).parents[2] / "docs" / "tofino.md"


def _name(form: Form) -> str:
    return str(form["name"])


def _word(refusal: str) -> str:
    return "refused" if refusal else "accepted"


@pytest.mark.parametrize("form", FORMS, ids=_name)
def test_a_form_gets_the_compilers_verdict(form: Form) -> None:
    found = verdict(form)
    if "differs" in form:
        assert _word(found) != form["compiler"], "it agrees now: remove differs"
    else:
        assert _word(found) == form["compiler"], (found, form.get("reason"))


@pytest.mark.parametrize("form", [f for f in FORMS if "memory" in f], ids=_name)
def test_a_form_takes_the_compilers_blocks(form: Form) -> None:
    assert memory(form) == form["memory"]


@pytest.mark.skipif(COMPILER is None, reason="p4c-barefoot of p4c is not on PATH")
@pytest.mark.parametrize("form", TO_COMPILE, ids=_name)
def test_the_compiler_says_so(form: Form, tmp_path: Path) -> None:
    assert COMPILER is not None
    source = tmp_path / "form.p4"
    source.write_text(text(form))
    target, arch = (chip(form), "tna" if chip(form) == "tofino" else "t2na")
    command = [COMPILER, "--target", target, "--arch", arch, "-o", str(tmp_path / "out")]
    command += ["--bf-rt-schema", str(tmp_path / "bf-rt.json"), str(source)]  # which has rules, too
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ("refused" if done.returncode else "accepted") == form["compiler"], done.stderr


CASTS = {  # in a register action; what bf-p4c of p4c 1.2.5.16 says of it
    "v = (bit<32>) hdr.n.w1[31:16];": "accepted",
    "v = v + (bit<32>) hdr.n.w1[23:16];": "accepted",
    "v = v + (bit<32>) hdr.n.b0;": "accepted",
    "v = v + (hdr.n.h0 ++ hdr.n.h1);": "accepted",
    "v = (bit<32>) (bit<8>) (hdr.n.w1 >> 16);": "refused",
    "v = v + (bit<32>) (bit<16>) (hdr.n.w1 >> 16);": "refused",
    "v = v + (bit<32>) (bit<16>) hdr.n.w1;": "refused",
    "v = v + (bit<32>) (bit<16>) (bit<24>) hdr.n.w1;": "refused",
    "v = v + (bit<32>) (bit<8>) (hdr.n.h0 >> 8);": "refused",
    "v = v + (bit<32>) (hdr.n.h0 >> 8);": "refused",
    "v = v + ((bit<32>) hdr.n.h0 << 8);": "refused",
    "v = v + (hdr.n.w1 >> 16);": "refused",
    "v = hdr.n.w1 >> 16;": "refused",
    "v = (bit<32>) (bit<8>) (v >> 16);": "refused",
    "v = (bit<32>) (bit<8>) v;": "refused",
}


@pytest.mark.parametrize("alu", CASTS)
def test_casts_and_shifts_of_register_actions(alu: str) -> None:
    assert _word(verdict({"name": "casts", "alu": f"{alu} o = v;"})) == CASTS[alu]


def test_the_document_has_the_agreement_at_first() -> None:
    document = DOCS.read_text()
    same = Counter(form["kind"] for form in FORMS if form["first"] == form["compiler"])
    guessed = Counter(form["kind"] for form in FORMS if form["guess"] == form["compiler"])
    every = Counter(form["kind"] for form in FORMS)
    for kind, count in every.items():
        assert f"| {kind} | {count} | {same[kind]} | {guessed[kind]} |" in document
    total = f"| all | {len(FORMS)} | {same.total()} | {guessed.total()} |"
    assert total in document
