"""Turing-optimal learning: a search over small machines for one that learns."""

from tapegrad.search.family import Family, canonical_machines, machine_of, table_text
from tapegrad.search.run import SearchOptions, SearchProgress, SearchResult, run
from tapegrad.search.tasks import TASKS, Task, task_named

__all__ = [
    "TASKS",
    "Family",
    "SearchOptions",
    "SearchProgress",
    "SearchResult",
    "Task",
    "canonical_machines",
    "machine_of",
    "run",
    "table_text",
    "task_named",
]
