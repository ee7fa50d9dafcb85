"""The impairment models by the name that an experiment file gives them."""

from gradplane.hosts.impairments.corruption import Corruption
from gradplane.hosts.impairments.duplication import Duplication
from gradplane.hosts.impairments.impairment_models import (
    Bernoulli,
    BurstLoss,
    DropList,
    ImpairmentModel,
    ModelPlace,
    Nth,
    Spec,
    Straggler,
)
from gradplane.hosts.impairments.jitter import Jitter
from gradplane.hosts.impairments.reordering import Reordering

MODELS: dict[str, type[ImpairmentModel]] = {
    "bernoulli": Bernoulli,
    "nth": Nth,
    "burst": BurstLoss,
    "corruption": Corruption,
    "duplication": Duplication,
    "reordering": Reordering,
    "jitter": Jitter,
    "drop list": DropList,
    "straggler": Straggler,
}


def make_model(spec: Spec, place: ModelPlace) -> ImpairmentModel | None:
    """Return the spec's model, None if it is for another link."""
    if spec["link"] not in ("*", place.link):
        return None
    return MODELS[spec["model"]](spec, place)
