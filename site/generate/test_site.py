"""The sample site is what its pages say it is."""

import gzip
import json
import random
import re
import unittest
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path

import content

PAGES = Path(__file__).resolve().parents[1] / "pages"
GENERATED_LINKS = ("files/", "large/", "odd/")


class Content(unittest.TestCase):
    sizes = (64, 65, 100, 511, 4096, 16384)

    def test_every_kind_has_exactly_the_size_that_was_asked_for(self):
        for make in (content.text, content.record, content.picture, content.style):
            for size in self.sizes:
                made = make(random.Random(size), size)
                self.assertEqual(len(made.encode()), size, make.__name__)

    def test_it_is_the_same_every_time(self):
        for make in (content.text, content.record, content.picture, content.style):
            self.assertEqual(make(random.Random(1), 900), make(random.Random(1), 900))
        self.assertEqual(content.noise("x", 100), content.noise("x", 100))

    def test_documents_are_well_formed(self):
        for size in self.sizes:
            json.loads(content.record(random.Random(size), size))
            xml.fromstring(content.picture(random.Random(size), size))

    def test_noise_does_not_compress(self):
        self.assertGreater(len(gzip.compress(content.noise("x", 10_000))), 10_000)


class Pages(unittest.TestCase):
    def test_nothing_comes_from_elsewhere(self):
        for page in [*PAGES.glob("*.html"), *PAGES.glob("*.css"), *PAGES.glob("*.js")]:
            for address in re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(https?:[^"')\s]+)""",
                                      page.read_text()):
                self.fail(f"{page.name} refers to {address}")

    def test_every_link_leads_somewhere(self):
        for page in PAGES.glob("*.html"):
            for address in links(page):
                if address.startswith(GENERATED_LINKS) or address.startswith("#"):
                    continue
                file = PAGES / ("index.html" if address == "./" else address)
                self.assertTrue(file.is_file(), f"{page.name} leads to {address}")

    def test_pictures_say_what_they_show_and_how_large_they_are(self):
        for page in PAGES.glob("*.html"):
            for tag in tags(page, "img"):
                self.assertTrue(tag.get("alt"), page.name)
                self.assertTrue({"width", "height"} <= tag.keys(), page.name)

    def test_drawings_are_well_formed(self):
        for picture in PAGES.rglob("*.svg"):
            xml.fromstring(picture.read_text())


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def tags(page, wanted):
    parser = Tags()
    parser.feed(page.read_text())
    return [attributes for tag, attributes in parser.found if tag == wanted]


def links(page):
    return [attributes[name] for tag, name in (("a", "href"), ("link", "href"), ("img", "src"),
                                               ("script", "src"))
            for attributes in tags(page, tag) if name in attributes]


if __name__ == "__main__":
    unittest.main()
