"""Trained classifiers: nets of `emulator` and `rcnn`, with what was trained and the names of the classes.

The net is proved like any other. What stands beside it follows from nothing in the folder: the data that it
was trained on are not saved, and a class is called what its owner calls it. So it is only held to what
training can leave and what a classifier can be, and the verdict says that it was not compared.
"""

import re
from typing import Any

import numpy as np

from tapegrad_check.fields import number, text, whole
from tapegrad_check.folder import Arrays, Folder, require
from tapegrad_check.graph import graph_in
from tapegrad_check.losses import sizes_of
from tapegrad_check.targets.emulator import TRAINED
from tapegrad_check.targets.filters import CLOSE
from tapegrad_check.targets.rcnn import MEMORY

FORMS = {"practical": "channels", "paper": "ternary"}
"""How a filter of each form encodes a cell."""
NOT_COMPARED = "not compared: class names, thresholds, settings, trained memory"


def check(folder: Folder) -> list[str]:
    """What was seen of it, if the folder holds one."""
    target, settings = folder.config["target"], folder.config.get("estimator")
    trained = {"emulator": TRAINED, "rcnn": MEMORY}.get(target, "")
    both = (settings is None) == (trained not in folder.own)
    require(both, "a classifier lacks its settings, or what it was trained to")
    if settings is None:
        return []
    graph = graph_in(folder)
    assert graph is not None
    if target == "emulator":
        features = _emulated(settings, sizes_of(graph, "row", 1)[0], folder.own)
    else:
        features = _on_grid(settings, folder.config["net"], folder.own)
    classes, cuts = settings["classes"], settings["thresholds"]
    named = isinstance(classes, list) and len({type(one) for one in classes}) == 1 < len(classes)
    named = named and isinstance(classes[0], str | bool | int | float)
    require(named and classes == sorted(set(classes)), "the classes are no names in order")
    fits = (cuts is None) == (settings["threshold"] is None) and (cuts is None or len(cuts) == features)
    require(fits, "there is not a threshold for each feature")
    for cut in cuts or ():
        number(cut, "a threshold")
    form = f"they have the form that {len(classes):,} classes and {features:,} features ask for"
    return [f"{NOT_COMPARED}; {form}"]


def _emulated(settings: dict[str, Any], row: int, arrays: Arrays) -> int:
    """The number of features, of a net with so long a row. Beside them a sample has the number of a question,
    about a bit of the label or of a score. Where the learner tells fewer classes apart, there is a network
    for each."""
    inputs = row - 3  # the constant, a random bit and a guess
    features, kinds, *scores = settings.get("questions", [inputs, 2])
    whole(features, "the number of features")
    whole(kinds, "the number of classes that the learner tells apart", 2)
    found = [re.fullmatch(r"U?Int\(([1-9][0-9]{0,2})\)", text(own, "a score"), re.ASCII) for own in scores]
    bits = (kinds - 1).bit_length() + sum(int(own[1]) if own else 0 for own in found)
    fits = all(found) and features + (bits - 1).bit_length() == inputs
    require(fits, "the questions are not those of the net")
    rows, classes = np.atleast_2d(arrays[TRAINED]), len(settings["classes"])
    require(len(rows) == (classes if classes > kinds else 1), "there is not a network for each class")
    steps = whole(settings["steps"], "the number of steps")
    require(
        steps > 0 or (rows == arrays["weights"]).all(), "training has taken no step, and changed something"
    )
    return features


def _on_grid(settings: dict[str, Any], net: dict[str, Any], arrays: Arrays) -> int:
    """The number of features. A sample is written as thirds of signs, its label last; then comes the sample
    that ends training, which consists of ones."""
    require(FORMS.get(settings["form"]) == net["encoding"], "the classifier has another form than the net")
    memory = arrays[MEMORY].astype(np.float64)
    require(min(memory.shape) > 0 and len(memory) > 1, "nothing has been memorised")
    thirds = (np.abs(np.abs(memory) - 1 / 3) <= CLOSE).all() and (memory[-1] > 0).all()
    require(thirds, "no training leaves such a memory")
    made_for = [settings["learner"][name] for name in ("samples", "features")]
    samples, features = memory.shape[0] - 1, memory.shape[1] - 1
    fits = (made_for[0] is None or samples <= made_for[0]) and made_for[1] in (None, features)
    require(fits, "the learner is made for other data")
    return features
