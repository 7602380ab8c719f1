"""The ink of a page: what is a rule, a mark or a possible word, and which word leaves no ink."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from pipeline.documents.reader.bits import bits, whole
from pipeline.documents.reader.block_reader import Block, BlockWord, on_light_ground, reads_well
from pipeline.documents.reader.ink import blocks, covered, is_code, patches, strokes
from pipeline.documents.reader.ink_reading import unread
from pipeline.documents.reader.placed_words import CheckBox, PageWord
from pipeline.documents.reader.text_ink import TextInk
from pipeline.documents.reader.text_rows import RowToken
from pipeline.documents.reader.ticks import tick_boxes, tick_words
from pipeline.documents.reader.unseen import repeats
from tests.support.inked_pages import picture

PAGE = (850, 1100)


def a_page() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("L", PAGE, 255)
    return image, ImageDraw.Draw(image)


def a_token(text: str, confidence: float, box: tuple[float, float, float, float]) -> RowToken:
    return RowToken(text=text, x0=box[0], y0=box[1], x1=box[2], y1=box[3], confidence=confidence)


def a_word(text: str, box: tuple[float, float, float, float]) -> PageWord:
    left, top, right, bottom = box
    return PageWord(
        text=text,
        left=left,
        top=top,
        right=right,
        bottom=bottom,
        baseline=bottom,
        size=bottom - top,
        box=box,
    )


def test_bits_keep_every_pixel_and_never_run_into_the_next_row() -> None:
    image = Image.new("L", (53, 40))
    draw = ImageDraw.Draw(image)
    draw.line((3, 5, 40, 5), fill=255)
    draw.line((10, 0, 10, 39), fill=255)
    draw.line((49, 30, 52, 30), fill=255)
    draw.line((0, 31, 3, 31), fill=255)
    found = bits(image, 128)

    assert found.image().convert("L").tobytes() == image.tobytes()
    assert found.runs_across(20).image().getbbox() == (3, 5, 41, 6)
    assert found.runs_down(30).image().getbbox() == (10, 0, 11, 40)
    assert found.runs_across(6).count == 38
    assert found.inverted().count == 53 * 40 - found.count
    assert whole(53, 40).grown(5, 5).count == 53 * 40


def test_a_corner_grows_within_the_image() -> None:
    for corner, grown in (((0, 0), (0, 0, 6, 4)), ((52, 39), (47, 36, 53, 40))):
        image = Image.new("L", (53, 40))
        image.putpixel(corner, 255)

        assert bits(image, 1).grown(5, 3).image().getbbox() == grown


@pytest.mark.parametrize("ground", [255, 90, 0])
def test_rules_frames_and_even_grounds_are_no_words(ground: int) -> None:
    image, draw = a_page()
    draw.rectangle((50, 100, 800, 140), fill=ground, outline=30)
    for row in range(8):
        draw.line((50, 200 + 22 * row, 800, 200 + 22 * row), fill=0)
        draw.line((50 + 107 * row, 200, 50 + 107 * row, 354), fill=0, width=2)
    draw.rectangle((100, 500, 112, 512), outline=0)
    draw.ellipse((300, 500, 306, 506), fill=0)

    assert patches(strokes(image)) == []


@pytest.mark.parametrize(("ink", "paper"), [(0, 255), (190, 255), (255, 20), (140, 90)])
def test_words_dark_on_light_or_light_on_dark_are_one_patch(ink: int, paper: int) -> None:
    image, _ = a_page()
    image.paste(picture(("Potassium 6.1 mmol/L",), size=13, ink=ink, paper=paper), (100, 300))

    found = blocks(patches(strokes(image)))

    assert len(found) == 1
    assert found[0] == pytest.approx((112, 306, 250, 324), abs=14)


def test_words_that_are_known_are_explained() -> None:
    image, _ = a_page()
    image.paste(picture(("Potassium",), size=13), (100, 300))

    ink = strokes(image).without(covered(PAGE, [(0.13, 0.277, 0.21, 0.297)]))

    assert patches(ink) == []


def test_far_columns_are_blocks_of_their_own() -> None:
    image, _ = a_page()
    image.paste(picture(("Potassium",), size=13), (100, 300))
    image.paste(picture(("Creatinine",), size=13), (500, 300))

    assert len(blocks(patches(strokes(image)))) == 2


def test_text_is_no_code_for_machines() -> None:
    image, _ = a_page()
    image.paste(picture(("Na 138", "K 4.1", "Cl 98"), size=13), (100, 300))
    (box,) = blocks(patches(strokes(image)))

    assert not is_code(image, box)


def test_a_word_counts_as_shown_only_with_ink_of_its_own() -> None:
    bare, draw = a_page()
    draw.text((100, 300), "OTHER WORDS", fill=0)
    page = bare.copy()
    ImageDraw.Draw(page).text((100, 400), "6.10", fill=0)
    box = ImageDraw.Draw(page).textbbox((100, 400), "6.10")
    place = (box[0] / 850, 399 / 1100, box[2] / 850, 412 / 1100)
    ink = TextInk(page, bare)

    assert ink.shows("6.10", place)
    assert not ink.shows("OTHER", (100 / 850, 299 / 1100, 140 / 850, 312 / 1100))
    page.paste(255, (int(box[2]) - 6, 390, int(box[2]) + 4, 420))
    assert not TextInk(page, bare).shows("6.10", place)


def test_text_without_characters_is_ink_outside_of_the_words() -> None:
    bare, _ = a_page()
    page = bare.copy()
    page.paste(picture(("Creatinine",), size=13), (100, 300))

    assert patches(TextInk(page, bare).outside([]))
    assert not patches(TextInk(page, bare).outside([(0.1, 0.27, 0.25, 0.3)]))


def test_a_dark_ground_is_inverted_and_bold_type_is_not() -> None:
    dark = picture(("ALLERGIES",), size=40, ink=255, paper=20)
    light = picture(("ALLERGIES",), size=40)
    both = Image.new("L", (light.width, 2 * light.height), 255)
    both.paste(light, (0, 0))
    both.paste(dark, (0, light.height))

    shown = on_light_ground(both)

    assert shown.crop((0, 0, light.width, light.height)).tobytes() == light.tobytes()
    assert shown.getpixel((light.width // 2, light.height + 6)) == 235


def test_a_line_is_read_only_if_most_of_its_words_are_sure() -> None:
    box = (0.1, 0.1, 0.2, 0.2)
    sure, guess = a_token("Potassium", 91, box), a_token("~w", 20, box)

    assert reads_well([sure, a_token("6.1", 30, box)])
    assert not reads_well([sure, guess, guess])
    assert not reads_well([a_token("e", 95, box)])
    assert not reads_well([a_token("6.1", 30, box)])


def test_a_sideways_block_has_its_place_on_the_upright_page() -> None:
    token = a_token("Na", 90, (0.5, 0.6, 0.52, 0.7))
    block = Block(
        lines=((BlockWord(token=token, word=a_word("Na", (10, 20, 110, 40))),),),
        rotation=90,
        frame=(0.5, 0.5, 0.6, 0.7),
        size=(200, 100),
    )

    (word,) = block.words(600, 800)

    assert (word.left, word.top) == pytest.approx((240 + 0.8 * 10, 300 + 0.6 * 20))
    assert word.size == pytest.approx(12)


@pytest.mark.parametrize(
    ("hidden", "is_repeated"),
    [
        ((), True),
        (("Potassium", "6.1"), True),
        (("DNR",), False),
        (("Patient", "is", "6.1"), False),
    ],
)
def test_hidden_words_repeat_a_scan_if_half_of_them_are_read(
    hidden: tuple[str, ...], *, is_repeated: bool
) -> None:
    assert repeats(hidden, {"potassium", "6.1", "mmol/l"}) is is_repeated


def test_unread_ink_is_measured_and_read_ink_is_not() -> None:
    image, draw = a_page()
    for step in range(12):
        draw.arc((100 + 12 * step, 300, 125 + 12 * step, 330), 0, 300, fill=0, width=2)
    ink = strokes(image)

    left = unread(ink, image, [])
    read = unread(ink, image, [a_token("x", 90, (0.1, 0.26, 0.32, 0.31))])

    assert left.unread_share == pytest.approx(157 * 30 / (850 * 1100), rel=0.4)
    assert [region.kind for region in left.regions] == ["unread"]
    assert (read.unread_share, read.regions) == (0.0, ())


def test_ink_inside_a_check_box_is_a_tick() -> None:
    image, draw = a_page()
    boxes = [(x / 850, 500 / 1100, (x + 14) / 850, 514 / 1100) for x in (100, 200)]
    for x0, y0, x1, y1 in boxes:
        draw.rectangle((x0 * 850, y0 * 1100, x1 * 850, y1 * 1100), outline=0)
    draw.line((102, 507, 106, 512, 116, 496), fill=0, width=2)
    ink = strokes(image)
    drawn = [CheckBox(left=0, top=0, right=1, bottom=1, ticked=False, box=box) for box in boxes]

    words = tick_words([a_word("[ ]", box) for box in boxes], ink)

    assert [word.text for word in words] == ["[x]", "[ ]"]
    assert [box.ticked for box in tick_boxes(drawn, ink)] == [True, False]
