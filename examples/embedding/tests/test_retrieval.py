"""What the vectors are for: texts of one meaning lie nearer than texts of another."""

from lucius_sdk.testing import run_step
from lucius_vectors import load_model, read_vectors

from embedding_service.execute import service

TRIPLETS = [
    ("When must the bill be paid?", "Payment is due on 13 April.", "The warehouse opens at nine."),
    ("Who is the customer?", "The lamps were sold to the observatory.", "Paper does not last."),
    ("How can I end the contract?", "Notice of termination is three months.", "Tea is served."),
    ("The parcel arrived broken.", "The goods were damaged in transit.", "Our office has moved."),
    ("How much does it cost in all?", "The total amount is 4,711 euros.", "Call us on Monday."),
    ("A dog runs on the beach.", "A puppy plays in the sand by the sea.", "The stock market fell."),
    ("He cannot sleep at night.", "He suffers from insomnia.", "He bought a new bicycle."),
    ("The car does not start.", "The vehicle's engine fails to turn on.", "The soup is too salty."),
    ("She teaches children to read.", "She works at a primary school.", "It snowed in the Alps."),
    ("Where is the company based?", "Its head office is in Fenbridge.", "Bring a warm coat."),
    ("The meeting was called off.", "The appointment was cancelled.", "The river is very deep."),
    ("What tax is included?", "The price contains 20 percent VAT.", "Lilies bloom in June."),
]


def test_a_text_is_nearer_to_its_paraphrase_than_to_another_text() -> None:
    vectors = load_model().embed([text for triplet in TRIPLETS for text in triplet])
    right = sum(
        float(anchor @ same) > float(anchor @ other)
        for anchor, same, other in vectors.reshape(len(TRIPLETS), 3, -1)
    )
    assert right >= len(TRIPLETS) - 1


def test_a_question_finds_its_chunk_among_all_others() -> None:
    """Chunks of one sentence: each answer on a line of its own."""
    text = "\n\n".join(same for _, same, _ in TRIPLETS)
    done = run_step(service, {"chunk_size": 16, "overlap": 0}, text.encode())
    document = read_vectors(done.files["vectors.json"])
    questions = load_model().embed([question for question, _, _ in TRIPLETS])
    nearest = (questions @ document.vectors.T).argmax(axis=1)
    found = [document.chunks[index].text for index in nearest]
    assert sum(same in chunk for (_, same, _), chunk in zip(TRIPLETS, found, strict=True)) >= 11
