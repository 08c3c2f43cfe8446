"""Pre-compressed siblings: `page.html.gz`, `.br` and `.zst` beside `page.html`."""

import gzip
import shutil
import subprocess

# Below this the head outweighs what compression saves.
WORTH_IT = 512  # bytes
COMPRESSIBLE = {".html", ".css", ".js", ".svg", ".txt", ".json"}
BATCH = 500  # files to one call of a compressor


def compress(folder, say):
    """Writes the siblings of every file under `folder` that gains from them; the codings made.

    Files keep the time of their original, as servers expect of siblings. A compressor that is not
    installed is left out, and said to be.
    """
    files = [path for path in sorted(folder.rglob("*")) if worth_it(path)]
    for path in files:
        with gzip.GzipFile(path.with_name(path.name + ".gz"), "wb", 9, mtime=0) as out:
            out.write(path.read_bytes())
        copy_time(path, ".gz")
    made = ["gz"]
    for coding, command in (("br", ["brotli", "--keep", "--force", "--quality=9"]),
                            ("zst", ["zstd", "--keep", "--force", "--quiet", "-12"])):
        if not shutil.which(command[0]):
            say(f"site: {command[0]} is not installed; no .{coding} siblings")
            continue
        for begin in range(0, len(files), BATCH):
            subprocess.run([*command, "--", *files[begin:begin + BATCH]], check=True)
        for path in files:
            copy_time(path, "." + coding)
        made.append(coding)
    return made, len(files)


def worth_it(path):
    return path.is_file() and path.suffix in COMPRESSIBLE and path.stat().st_size >= WORTH_IT


def copy_time(path, suffix):
    shutil.copystat(path, path.with_name(path.name + suffix))
