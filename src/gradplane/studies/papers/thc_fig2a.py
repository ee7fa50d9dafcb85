"""THC, figure 2a: the parts of the exchange of one partition of 4 MB."""

from typing import Literal

from pydantic import Field

from gradplane.studies import plot, thc_rounds
from gradplane.studies.study import Study, StudyOutcome
from gradplane.studies.thc_rounds import SERVER, SWITCH, TOPK, Sizes


class Fig2a(Study):
    """A partition of `partition` values; `values`: of the exchanges that are emulated."""

    name: Literal["thc-fig2a"] = "thc-fig2a"
    partition: int = Field(default=2**20, ge=1)
    values: Sizes = thc_rounds.VALUES

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme."""
        found = thc_rounds.exchanges(["100Gbit"], self.values, seed)
        made = thc_rounds.rounds(found, "100Gbit", self.values, self.partition, 0.0)
        top, served, switch = (made[label].whole for label in (TOPK, SERVER, SWITCH))
        return StudyOutcome(
            title=f"THC, figure 2a: one partition of {self.partition:,} values, 100 Gbit/s",
            head=thc_rounds.PARTS,
            rows=thc_rounds.parts(made),
            notes=(
                f"TopK takes {top / served:.1f} times as long as THC through a server, and"
                f" {top / switch:.1f} times as long as through the switch. The paper's bars have no"
                " numbers in our copy; it says that decoding and encoding at the server are a"
                " large part of the time, which THC does not have.",
                "Where they would differ: most of a codec's time is a GPU's launches at this size.",
                *thc_rounds.NOTES[1:],
            ),
            values=thc_rounds.plain(made),
            figure=plot.stacks(list(made), thc_rounds.bars(made), "ms a partition"),
        )
