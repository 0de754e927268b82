"""A recording as a video, MP4 or WebM: the pictures of the animation, encoded by ffmpeg.

The program is the one on the PATH, or else the one inside the package imageio-ffmpeg (extra `video`). It gets
pictures through a pipe and writes to a file of its own, which is handed on only when all has gone well.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from tapegrad._compile import Progress
from tapegrad.errors import Refused
from tapegrad.show.animation import A_SECOND, LAST, painter_of
from tapegrad.show.recorder import Recording

SMOOTH, SIZE = 2, 1.5
"""Pictures are 1440 by 900."""
RATE = 24
"""Frames a second in the file, for players that expect many; a picture stands in several of them."""
CODECS = {
    ".mp4": ("-c:v", "libx264", "-preset", "fast", "-crf", "20", "-movflags", "+faststart"),
    ".webm": ("-c:v", "libvpx-vp9", "-crf", "30", "-b:v", "0", "-deadline", "good", "-cpu-used", "4"),
}
"""Kinds of video by the end of their names. H.264 with 4:2:0 colours is what slides and browsers play."""


def encoder() -> str:
    """The path of ffmpeg."""
    if (found := shutil.which("ffmpeg")) is not None:
        return found
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise Refused(
            "a video is encoded by ffmpeg, which is not on the PATH",
            advice="Install the extra: pip install 'tapegrad[video]'. A .gif needs no ffmpeg.",
        ) from error


def video(recording: Recording, kind: str, *, progress: Progress | None = None) -> bytes:
    """The whole run as a video of this kind; of a long one every so many frames."""
    program = encoder()
    painter, numbers = painter_of(recording, SMOOTH, SIZE)
    width, height = painter.size
    with tempfile.TemporaryDirectory(prefix="tapegrad-video-") as folder:
        made, said = Path(folder, f"run{kind}"), Path(folder, "errors.txt")
        command = [program, "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]
        command += ["-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", f"{width}x{height}"]
        command += ["-framerate", str(A_SECOND), "-i", "pipe:0", "-an", "-pix_fmt", "yuv420p"]
        command += ["-r", str(RATE), *CODECS[kind], str(made)]
        with (
            said.open("wb") as errors,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
            ) as process,
        ):
            assert process.stdin is not None
            try:
                for done, number in enumerate(numbers, 1):
                    content = painter.frame(number).tobytes()
                    for _ in range(1 if done < len(numbers) else round(LAST * A_SECOND)):
                        process.stdin.write(content)
                    if progress is not None:
                        progress(done)
                process.stdin.close()
            except BrokenPipeError:  # it has ended early: why is in the file
                pass
            except BaseException:
                process.kill()
                raise
        if process.returncode or not made.is_file():
            lines = said.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise Refused(
                f"ffmpeg could not make the video: {lines[-1]}",
                advice="Another ffmpeg may: pip install 'tapegrad[video]'. A .gif needs none.",
            )
        return made.read_bytes()
