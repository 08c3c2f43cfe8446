"""Makes the sample site: site/generated, the document root that `make run` serves.

    python3 site/generate [FOLDER]

Hand-written pages from site/pages, some thousands of small files, a few large ones, compressed
siblings, odd names, and a page that lists it all. The same at every run, and made only when
something it is made of has changed.
"""

import hashlib
import os
import random
import shutil
import sys
import time
from html import escape
from pathlib import Path
from urllib.parse import quote

import content
import siblings

SITE = Path(__file__).resolve().parents[1]
STAMP = ".made-of"  # a dotfile: AFPA does not serve it

KB, MB = 1024, 1024 * 1024
SMALLEST, LARGEST = 64, 16 * KB
KINDS = (  # folder, first letter, suffix, what makes it
    ("text", "t", ".txt", content.text),
    ("data", "d", ".json", content.record),
    ("icons", "i", ".svg", content.picture),
    ("styles", "s", ".css", content.style),
)
OF_EACH_KIND = 750
LARGE = (("1m.bin", MB), ("10m.bin", 10 * MB), ("100m.bin", 100 * MB))
LARGE_TEXT = ("1m.txt", MB)
ODD = (
    "two words.txt", "größe.txt", "日本語.txt", "percent%25.txt", "plus+and&equals=1.txt",
    "question?mark.txt", "hash#mark.txt", "semi;colon.txt", "quote'\".txt", "UPPER.TXT",
    "no-extension", "many.dots.in.a.name.txt", "empty.txt",
    "/".join(f"level-{depth:02}" for depth in range(1, 21)) + "/bottom.txt",
    "a-long-name-" + "x" * 200 + ".txt",
)


def main():
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE / "generated"
    wanted = stamp()
    if (target / STAMP).is_file() and (target / STAMP).read_text() == wanted:
        say(f"site: {target} is up to date")
        return
    begun = time.monotonic()
    making = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        make(making)
        (making / STAMP).write_text(wanted)
        shutil.rmtree(target, ignore_errors=True)
        making.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    say(f"site: {target} made in {time.monotonic() - begun:.1f} s")


def make(root):
    """Writes the whole site into `root`, which must not exist."""
    shutil.copytree(SITE / "pages", root)  # links to pictures elsewhere become files
    small = write_small(root / "files")
    say(f"site: {len(small)} small files")
    large = write_large(root / "large")
    say(f"site: {len(large)} large files")
    odd = write_odd(root / "odd")
    (root / "files" / "index.html").write_text(listing(small, large, odd))
    codings, count = siblings.compress(root, say)
    say(f"site: {count} files compressed as {', '.join(codings)}")


def write_small(folder):
    """The small files by path under `folder`; sizes spread evenly over the powers of two."""
    made = {}
    for kind, letter, suffix, make_one in KINDS:
        (folder / kind).mkdir(parents=True)
        for number in range(OF_EACH_KIND):
            name = f"{kind}/{letter}{number:04}{suffix}"
            chance = random.Random(name)
            size = round(SMALLEST * (LARGEST / SMALLEST) ** chance.random())
            (folder / name).write_text(make_one(chance, size))
            made[name] = (folder / name).stat().st_size
    return made


def write_large(folder):
    folder.mkdir()
    for name, size in LARGE:
        (folder / name).write_bytes(content.noise(name, size))
    name, size = LARGE_TEXT
    (folder / name).write_text(content.text(random.Random(name), size))
    return dict([*LARGE, LARGE_TEXT])


def write_odd(folder):
    for name in ODD:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "empty.txt" else f"This file is called {path.name}\n")
    (folder / ".hidden.txt").write_text("Nobody is to read this through a server.\n")
    return ODD


def listing(small, large, odd):
    """The page files/index.html, in the dress of the hand-written ones."""
    page = (SITE / "pages" / "gallery.html").read_text()
    head, rest = page.split('<main class="wrap" id="main">\n')
    tail = rest[rest.index("</main>"):]
    head = (head.replace("<title>Gallery</title>", "<title>Files</title>")
            .replace("Pictures of caching, drawn by a program.", "What the sample site contains.")
            .replace(' aria-current="page"', "").replace('href="files/"',
                                                         'href="files/" aria-current="page"')
            .replace("<head>\n", '<head>\n  <base href="../">\n').replace('href="#main"',
                                                                         'href="files/#main"'))
    return head + '<main class="wrap" id="main">\n' + body(small, large, odd) + tail


def body(small, large, odd):
    total = sum(small.values()) + sum(large.values())
    parts = [
        '<p class="eyebrow">Files</p>', "<h1>Something to ask for</h1>",
        f'<p class="lead">{len(small):,} small files of {SMALLEST} B to {LARGEST // KB} KB, '
        f"{len(large)} large ones, {len(odd)} with odd names: {total / MB:.0f} MB, not counting "
        f"compressed siblings. The same bytes on every machine.</p>",
        "<h2>Large files</h2>", '<div class="table"><table><tbody>',
        *(f'<tr><td>{link("large", name)}</td><td class="number">{size:,} bytes</td></tr>'
          for name, size in large.items()),
        "</tbody></table></div>", "<h2>Odd names</h2>", "<ul>",
        *(f"<li>{link('odd', name, shown=shorten(name))}</li>" for name in odd), "</ul>",
    ]
    for kind, *_ in KINDS:
        names = [name for name in small if name.startswith(kind + "/")]
        parts += [f"<h2>Small files: {kind}</h2>", '<ul class="columns">',
                  *(f"<li>{link('files', name, name.split('/')[1])}, {small[name]:,} B</li>"
                    for name in names[:60]), "</ul>",
                  f"<p>… and so on to {link('files', names[-1], names[-1].split('/')[1])}.</p>"]
    return "\n".join(parts) + "\n"


def link(folder, name, shown=None):
    return f'<a href="{folder}/{quote(name)}">{escape(shown or name)}</a>'


def shorten(name, most=60):
    return name if len(name) <= most else f"{name[:most // 2]}…{name[-most // 3:]}"


def stamp():
    """A digest of all that the site is made of."""
    digest = hashlib.sha256()
    for path in sorted([*(SITE / "pages").rglob("*"), *Path(__file__).parent.glob("*.py")]):
        if path.is_file():
            digest.update(f"{path.relative_to(SITE)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    digest.update(" ".join(filter(shutil.which, ("brotli", "zstd"))).encode())
    return digest.hexdigest() + "\n"


def say(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
