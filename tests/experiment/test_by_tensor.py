"""Which codecs take each tensor by itself, what the key by_tensor changes, and old run folders."""

from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError, load_deployment

SERVER, RING = 'aggregation = "ps"', 'aggregation = "ring"\nreliability = "retransmit"'
SMALL = [[3456, "threelc"], [54, "threelc"], [540, "threelc"], [10, "threelc"]]


def pushes(folder: Path, text: str, recorded: bool = False) -> tuple[object, object]:
    """Return what a job pushes with, tensors by size and codec; and what its folder says."""
    path = folder / "e.toml"
    path.write_text("[topology]\nworkers = 2\n[[job]]\n" + text)
    deployment = load_deployment(path, recorded=recorded)
    name, params = deployment.jobs[0].config.coding.codec
    found = [[n, c["name"]] for n, c in params["parts"]] if name == "per_tensor" else name
    return found, deployment.experiment.job[0].by_tensor


@pytest.mark.parametrize(
    "text, found, said",
    [
        (f'{SERVER}\npush = "threelc"', SMALL, "paper"),
        (f'{SERVER}\npush = "threelc"\nby_tensor = false', "threelc", False),
        (f'{SERVER}\npush = "topk"', "topk", None),
        (f'{SERVER}\npush = "topk"\npull = "onebit"', "topk", "paper"),
        (f'{SERVER}\npush = "float32"\nby_tensor = true', "float32", True),
        (f'{RING}\npush = "onebit"', "onebit", "paper"),
        ('push = "terngrad"', "terngrad", "paper"),
    ],
)
def test_each_tensor_by_itself_where_its_paper_says_so(
    text: str, found: object, said: object, tmp_path: Path
) -> None:
    assert pushes(tmp_path, text) == (found, said)


@pytest.mark.parametrize("way", [SERVER, RING], ids=["ps", "ring"])
def test_powersgd_has_each_tensors_matrix(way: str, tmp_path: Path) -> None:
    matrices = [[3456, "powersgd"], [54, "float32"], [540, "powersgd"], [10, "float32"]]
    assert pushes(tmp_path, f'{way}\npush = "powersgd"')[0] == matrices
    small = f'{way}\npush = "powersgd"\nmodel = "softmax"\ndata = "wine"'
    assert pushes(tmp_path, small)[0] == "float32"


@pytest.mark.parametrize("recorded, version", [(False, 3), (True, 1)])
def test_a_folder_names_the_version_of_the_format(
    recorded: bool, version: int, tmp_path: Path
) -> None:
    """One that names none is of a release that padded."""
    path, pairs = tmp_path / "e.toml", '[["*.weights", "thc"], ["*", "float32"]]'
    for push in ('"thc"', '{name = "uniform_thc", bits = 3}', f"{pairs}\n{SERVER}"):
        path.write_text(f"[topology]\nworkers = 2\n[[job]]\npush = {push}\n")
        deployment = load_deployment(path, recorded=recorded)
        named = deployment.experiment.job[0].push.args
        written = dict(named["tensors"])["*.weights"] if "tensors" in named else named
        assert written["version"] == version
        params = deployment.jobs[0].config.coding.codec[1]
        used = params["parts"][0][1] if "parts" in params else params
        assert used["version"] == version
    path.write_text('[topology]\nworkers = 2\n[[job]]\npush = {name = "thc", version = 2}\n')
    again = load_deployment(path, recorded=True)
    assert again.jobs[0].config.coding.codec[1]["version"] == 2


@pytest.mark.parametrize(
    "codec, brought", [("thc", {"version": 3}), ("threelc", "paper"), ("powersgd", "paper")]
)
def test_a_codec_that_a_setting_brings_to_a_folder_is_that_of_a_new_run(
    codec: str, brought: object, tmp_path: Path
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f"[topology]\nworkers = 2\n[[job]]\n{SERVER}\npush = 'float32'\n")
    folders = load_deployment(path, recorded=True).experiment
    job = load_deployment(folders, [f"job.push={codec}"]).experiment.job[0]
    assert brought in (job.push.args, job.by_tensor) and "rounds" not in job.push.args


@pytest.mark.parametrize("push", ['"powersgd"', '[["*", "powersgd"]]'])
def test_a_folder_of_an_older_version_has_its_defaults(push: str, tmp_path: Path) -> None:
    text = f"{SERVER}\npush = {push}"
    path = tmp_path / "e.toml"
    path.write_text("[topology]\nworkers = 2\n[[job]]\n" + text)
    name, params = load_deployment(path, recorded=True).jobs[0].config.coding.codec
    kinds = [c for _, c in params["parts"]] if name == "per_tensor" else [params]
    assert [(kind["rounds"], kind.get("columns")) for kind in kinds] == [(1, None)] * len(kinds)
    assert pushes(tmp_path, f'{SERVER}\npush = "threelc"', recorded=True)[0] == "threelc"
    said = f'{SERVER}\npush = "threelc"\nby_tensor = "paper"'
    assert pushes(tmp_path, said, recorded=True)[0] == SMALL


@pytest.mark.parametrize(
    "text, message",
    [
        (
            'push = "terngrad"\nby_tensor = true',
            'e.toml:5: codec by tensor with aggregation = "switch": its workers sum whole vectors'
            ' under one codec: use aggregation = "ps", or one codec',
        ),
        (
            f'{RING}\npush = "onebit"\nby_tensor = true',
            "e.toml:6: codec by tensor: a ring's workers sum whole vectors under one codec: use one"
            ' codec, or powersgd and float32 alone, or aggregation = "ps"',
        ),
        (
            f'{SERVER}\npush = "powersgd"\npull_deltas = true',
            "e.toml:5: codec per_tensor: its workers take several means a step, and this server"
            " makes the step itself, with one: leave out pull_deltas and the policy of pull, or use"
            " another codec",
        ),
    ],
)
def test_what_does_not_go_by_tensor(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        pushes(tmp_path, text)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == message


@pytest.mark.parametrize(
    "text, message",
    [
        ('push = "thc"\npull = {name = "sums", bits = 8}', 'pull = "sums" has no parameters'),
        ('push = "thc"\npull = "sums"\npull_feedback = true', "leave out pull_feedback"),
        ('push = "terngrad"\npull = "sums"', "a sum has one table: leave them out (by_tensor ="),
        ('push = "topk"\npull = "sums"', "its codes cannot be summed before they are decoded"),
        ('push = {name = "thc", granularity = 4095}\npull = "sums"\nworkers = 20', "17 bits"),
    ],
)
def test_what_has_no_sums_to_answer(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f"[topology]\nworkers = 20\n[[job]]\n{SERVER}\n{text}\n")
    with pytest.raises(ExperimentError) as error:
        load_deployment(path)
    assert message in str(error.value) and "pull" in str(error.value)
