//! The programs' headers in a child process: no map, no privilege, very many steps a second.

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const INCLUDE: &str = "bpf/include";

/// A C program over those headers, compiled and running. It ends when its input does.
pub struct Compiled {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: ChildStdout,
}

impl Compiled {
    /// Compiles `source`, a file of the repository, into `folder`. None, said aloud, where there is no C
    /// compiler.
    pub fn start(source: &str, folder: &Path) -> Option<Self> {
        let Some(compiler) = ["clang", "gcc", "cc"].into_iter().find(|name| runs(name)) else {
            println!("SKIP: neither clang nor gcc is there to compile {source}");
            return None;
        };
        let program = folder.join("user_space");
        let status = Command::new(compiler)
            .current_dir(root())
            .args(["-O2", "-Wall", "-Werror", "-fno-strict-aliasing", "-I", INCLUDE, source, "-o"])
            .arg(&program)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler} compiles {source}");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the compiled program starts");
        let input = child.stdin.take().map(BufWriter::new);
        let output = child.stdout.take().expect("a pipe");
        Some(Self { child, input, output })
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.input().write_all(bytes).expect("the program reads");
    }

    /// Reads the program's answer to everything that was written.
    pub fn read(&mut self, answer: &mut [u8]) {
        self.input().flush().expect("the program reads");
        self.output.read_exact(answer).expect("the program answers");
    }

    fn input(&mut self) -> &mut BufWriter<ChildStdin> {
        self.input.as_mut().expect("open until dropped")
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// The folder of the repository: this file is part of crates in different places.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join(INCLUDE).is_dir()).expect("the source tree")
}
