"""Messages as JSON and as text, which protobuf itself parses and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from extensor.errors import FormatError, StructureError

if TYPE_CHECKING:
    from google.protobuf.message import Message

FORMATS = ("binary", "json", "text")


def expect_format(form: str, function: str) -> None:
    """Raises unless `form` is the name of a format."""
    if form not in FORMATS:
        fix = 'Leave format out for serialized messages; "json" is JSON, "text" is text_format.'
        raise StructureError(f"{function}: format", '"binary", "json" or "text"', repr(form), fix)


def parse_texts(texts: list[bytes], descriptor: Descriptor, form: str) -> list[bytes]:
    """Returns the serialized messages of texts.

    Args:
        texts: The texts, in UTF-8.
        descriptor: The message type.
        form: "json" or "text".

    Raises:
        FormatError: If a text is not a message of the type (also a ValueError).
    """
    make, pool = GetMessageClass(descriptor), descriptor.file.pool
    parse: Any = json_format.Parse if form == "json" else text_format.Parse
    serialized: list[bytes] = []
    for number, text in enumerate(texts):
        try:
            message = parse(text.decode(), make(), descriptor_pool=pool)
        except (json_format.ParseError, text_format.ParseError, ValueError) as error:
            expected = f"a message of type {descriptor.full_name} as {form}"
            fix = "Correct the text."
            if form == "json":
                fix = "Correct the text; protobuf accepts the names and forms of its JSON mapping."
            raise FormatError(f"record {number}", expected, str(error)[:500], fix) from error
        serialized.append(message.SerializePartialToString())
    return serialized


def print_messages(serialized: list[bytes], descriptor: Descriptor, form: str) -> list[bytes]:
    """Returns the texts of serialized messages, each on one line.

    Args:
        serialized: The messages.
        descriptor: The message type.
        form: "json" or "text".

    Raises:
        FormatError: If a message has no such text, such as one with a time after the year 9999, or
            with a number that a closed enum does not list (also a ValueError).
    """
    parse, pool = GetMessageClass(descriptor).FromString, descriptor.file.pool

    def text(message: Message) -> str:
        if form == "json":
            return json_format.MessageToJson(message, indent=None, descriptor_pool=pool)
        return text_format.MessageToString(
            message, as_utf8=True, as_one_line=True, descriptor_pool=pool
        )

    texts: list[bytes] = []
    for number, one in enumerate(serialized):
        try:
            message = parse(one)
            size = message.ByteSize()
            message.DiscardUnknownFields()
            if message.ByteSize() < size:  # all other fields come from the message type
                raise ValueError("a number that a closed enum does not list")
            texts.append(text(message).encode())
        # Of a type in google.protobuf.Any that the pool does not have, JSON has a TypeError.
        except (json_format.SerializeToJsonError, DecodeError, TypeError, ValueError) as error:
            expected = f"a message of type {descriptor.full_name} that {form} can express"
            fix = 'Correct the value, or write format="binary".'
            raise FormatError(f"record {number}", expected, str(error)[:500], fix) from error
    return texts
