"""The messages with which an input is refused; no message contains a name or content of the file.

Parent and child use the same messages.
"""

from __future__ import annotations

from .types import InputRefused

SUPPORTED = "PDF, TIFF, PNG, JPEG, HEIC, WebP, BMP, plain text, RTF, DOCX or C-CDA"


def empty() -> InputRefused:
    """Refuse a file of no bytes."""
    return InputRefused("INPUT_INVALID", "The file is empty; upload it again.")


def unknown_type() -> InputRefused:
    """Refuse a file of a type that the reader does not know."""
    return InputRefused(
        "INPUT_INVALID", f"The file has an unknown type by its content; send {SUPPORTED}."
    )


def old_word() -> InputRefused:
    """Refuse an OLE file: DOC, XLS, PPT or MSG."""
    return InputRefused(
        "INPUT_INVALID",
        "The file is a DOC or another file of old Office programs; save it as DOCX or PDF.",
    )


def other_package() -> InputRefused:
    """Refuse a zip file that is no DOCX: XLSX, PPTX, ODT, EPUB, an archive."""
    return InputRefused(
        "INPUT_INVALID",
        "The file is a zip file but no DOCX; save a document as DOCX or PDF, and send the files of"
        " an archive one by one.",
    )


def hl7_messages() -> InputRefused:
    """Refuse messages of HL7 version 2."""
    return InputRefused(
        "INPUT_INVALID",
        "The file holds HL7 v2 messages; send the document as PDF, text or C-CDA.",
    )


def other_markup() -> InputRefused:
    """Refuse XML that is no C-CDA, HTML and JSON."""
    return InputRefused(
        "INPUT_INVALID",
        "The file is XML, HTML or JSON but no C-CDA document; save it as PDF or plain text.",
    )


def not_text(what: str) -> InputRefused:
    """Refuse bytes that cannot be read as text with certainty; `what` says why."""
    return InputRefused("INPUT_INVALID", f"{what}; export the file again as UTF-8 text or as PDF.")


def broken_document(kind: str) -> InputRefused:
    """Refuse a DOCX, RTF or C-CDA file (`kind`) that does not follow its format."""
    return InputRefused(
        "INPUT_INVALID",
        f"The {kind} file is damaged; open it, and save it as a new file or as PDF.",
    )


def too_deep(kind: str) -> InputRefused:
    """Refuse nesting that no real file has."""
    return InputRefused(
        "INPUT_INVALID", f"The {kind} file is nested too deeply; save it as a new file or as PDF."
    )


def defines_entities() -> InputRefused:
    """Refuse XML with a document type, which can define entities."""
    return InputRefused(
        "INPUT_INVALID",
        "The XML of the file has a document type, which can define entities; export it without"
        " DOCTYPE.",
    )


def too_much_inside(limit: int) -> InputRefused:
    """Refuse a DOCX by the bytes or the number of its unpacked parts."""
    return InputRefused(
        "INPUT_TOO_LARGE",
        f"The DOCX file unpacks to more than {limit:,} bytes or has too many parts; split it, or"
        " save it as PDF.",
    )


def broken() -> InputRefused:
    """Refuse a file that no library opens, even after repair."""
    return InputRefused(
        "INPUT_INVALID", "The file is damaged and cannot be repaired; export or scan it again."
    )


def no_pages() -> InputRefused:
    """Refuse a file that opens but has no pages."""
    return InputRefused("INPUT_INVALID", "The file has no pages; export it again.")


def dynamic_form() -> InputRefused:
    """Refuse an XFA form whose content is not on its pages."""
    return InputRefused(
        "INPUT_INVALID",
        "The file is an XFA form, whose content ordinary readers do not show; open it in Adobe"
        " Acrobat and print it to a new PDF.",
    )


def portfolio() -> InputRefused:
    """Refuse a PDF portfolio, whose content is in the files that it encloses."""
    return InputRefused(
        "INPUT_INVALID",
        "The file is a PDF portfolio, whose documents are enclosed files; extract the documents"
        " and upload each of them.",
    )


def every_page_damaged() -> InputRefused:
    """Refuse a file without any readable page."""
    return InputRefused(
        "INPUT_INVALID", "No page of the file can be read; export or scan it again."
    )


def page_crashed(number: int) -> InputRefused:
    """Refuse a file whose page (1-based; 0 is the opening) crashed the reader."""
    what = f"Page {number} of the file" if number else "The file"
    return InputRefused(
        "INPUT_INVALID",
        f"{what} is damaged and crashes the reader; export or scan it again.",
    )


def encrypted() -> InputRefused:
    """Refuse a file that needs a password."""
    return InputRefused(
        "INPUT_ENCRYPTED", "The file needs a password; remove the password and upload it again."
    )


def too_many_bytes(size: int, limit: int) -> InputRefused:
    """Refuse by size in bytes."""
    return InputRefused(
        "INPUT_TOO_LARGE",
        f"The file has {size:,} bytes; the limit is {limit:,}. Split it.",
    )


def too_many_pages(count: int, limit: int) -> InputRefused:
    """Refuse by the number of pages."""
    return InputRefused(
        "INPUT_TOO_LARGE", f"The file has {count:,} pages; the limit is {limit:,}. Split it."
    )


def too_many_pixels(number: int, limit: int) -> InputRefused:
    """Refuse by the pixels of one page (1-based)."""
    return InputRefused(
        "INPUT_TOO_LARGE",
        f"Page {number} is too large for {limit:,} pixels; scan it at a lower resolution.",
    )


def too_many_characters(number: int, limit: int) -> InputRefused:
    """Refuse by the characters of one page (1-based)."""
    return InputRefused(
        "INPUT_TOO_LARGE",
        f"Page {number} has more than {limit:,} characters; print it to a new PDF.",
    )


def too_slow(number: int, seconds: float) -> InputRefused:
    """Refuse a file whose page (1-based; 0 is the opening) takes too long."""
    what = f"Page {number} of the file" if number else "Opening the file"
    return InputRefused(
        "INPUT_TOO_LARGE", f"{what} takes more than {seconds:g} s; print it to a new PDF."
    )


def too_much_memory(number: int, limit: int) -> InputRefused:
    """Refuse a file whose page (1-based; 0 is the opening) needs too much memory."""
    what = f"Page {number} of the file" if number else "Opening the file"
    return InputRefused(
        "INPUT_TOO_LARGE",
        f"{what} needs more than {limit // 1_000_000:,} MB; print it to a new PDF.",
    )


def page_damaged(number: int) -> InputRefused:
    """Refuse to show a page (1-based) that cannot be decoded."""
    return InputRefused(
        "INPUT_INVALID", f"Page {number} of the file cannot be decoded; scan it again."
    )


def page_missing(number: int, count: int) -> InputRefused:
    """Refuse to show a page (1-based) that the file does not have."""
    return InputRefused(
        "INPUT_INVALID", f"The file has {count:,} pages; page {number:,} does not exist."
    )


def too_much_markup(kind: str, limit: int) -> InputRefused:
    """Refuse a document with too many elements."""
    return InputRefused(
        "INPUT_TOO_LARGE", f"The {kind} file has more than {limit:,} elements; split it."
    )


def enclosed_body() -> InputRefused:
    """Refuse a C-CDA document whose body is another file."""
    return InputRefused(
        "INPUT_INVALID",
        "The C-CDA document only encloses another file; send that file itself.",
    )
