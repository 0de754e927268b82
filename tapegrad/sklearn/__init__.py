"""Networks that learn, as classifiers of scikit-learn (extra `sklearn`).

`EmulatedClassifier` emulates any learner by plain SGD (Abbe, Sandon); `RCNNClassifier` is the recurrent
convolutional network of a grid machine (Goel et al.). Both keep to one convention for features and labels
(`tapegrad.learners.data`), take sparse matrices, and write **files**: `save` writes a folder of JSON and
arrays, which `tapegrad check` checks; `load` opens it again.
"""

try:
    import sklearn as sklearn
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "these classifiers need scikit-learn, which is not installed. Try: pip install 'tapegrad[sklearn]'.",
        name="sklearn",
    ) from error

from tapegrad.sklearn.emulated import EmulatedClassifier
from tapegrad.sklearn.rcnn import RCNNClassifier

__all__ = ["EmulatedClassifier", "RCNNClassifier"]
