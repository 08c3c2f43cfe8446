//! The programs' parser where it belongs: compiled for BPF, verified, and run by BPF_PROG_TEST_RUN.

use std::path::Path;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};

use super::framing::Framing;
use super::property::Verdict;
use super::world::{HEADER_BLOCKS, Table, World};

#[path = "../../build/compile.rs"]
mod compile;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agree/judge.bpf.c");
const BPF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf");

/// How a head is judged: the protocol numbers of `judge.bpf.c`.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// A header block that was read before is compared.
    Known = 0x88b5,
    /// Every header block is read line by line.
    New = 0x88b6,
    /// Not at all: the head is only copied out of the packet.
    OnlyLoad = 0x88b7,
}

/// `judge.bpf.c`, loaded.
pub struct Judge(Object);

impl Judge {
    /// Compiles it into `folder` and loads it. None, said aloud, where either cannot be.
    pub fn load(folder: &Path, world: &World) -> Option<Self> {
        let path = folder.join("judge.bpf.o");
        let clang = std::process::Command::new("clang").arg("--version").output();
        if !clang.is_ok_and(|out| out.status.success()) {
            println!("SKIP: no clang to compile {SOURCE} for BPF");
            return None;
        }
        let includes = [format!("-I{BPF}/include"), format!("-I{BPF}")];
        compile::compile(SOURCE, &path, folder, &[&includes[0], &includes[1]]);
        let object = match Self::open(&path, world) {
            Ok(object) => object,
            // The verifier's refusal has the same kind, and is no reason to skip anything.
            Err(error)
                if error.kind() == libbpf_rs::ErrorKind::PermissionDenied
                    && !rustix::process::geteuid().is_root() =>
            {
                println!("SKIP: programs cannot be loaded here: {error:#}");
                return None;
            }
            Err(error) => panic!("judge.bpf.c is loaded: {error:#}"),
        };
        let judge = Self(object);
        judge.fill(world).expect("tables are filled");
        Some(judge)
    }

    fn open(path: &Path, world: &World) -> libbpf_rs::Result<Object> {
        let mut open = ObjectBuilder::default().open_file(path)?;
        for mut program in open.progs_mut() {
            let ours = program.name() == "agree" || program.name() == "agree_framing";
            program.set_autoload(ours);
        }
        let objects = world.objects.len() as u32;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("objects") => map.set_max_entries(objects)?,
                Some("sites") => map.set_max_entries(64)?,
                Some("slots") => map.set_max_entries((objects + 1) * 4)?,
                Some("checked") => map.set_max_entries(HEADER_BLOCKS)?,
                _ => {}
            }
        }
        open.load()
    }

    fn fill(&self, world: &World) -> libbpf_rs::Result<()> {
        world.entries().iter().try_for_each(|entry| {
            let name = match entry.table {
                Table::Sites => "sites",
                Table::Objects => "objects",
                Table::Slots => "slots",
                Table::Shared => ".data.shared",
                Table::Fields => "fields",
            };
            let map = self.0.maps().find(|map| map.name() == name).expect("the table exists");
            map.update(&entry.key, &entry.value, MapFlags::ANY)
        })
    }

    /// The program's verdict on a head of at most 3,000 bytes: more does not fit a test packet.
    pub fn judge(&mut self, head: &[u8], how: How) -> Verdict {
        Verdict::new(self.run(head, how, 1).0)
    }

    /// Mean time of many runs.
    pub fn time(&mut self, head: &[u8], how: How) -> Duration {
        self.run(head, how, 20_000).1
    }

    fn run(&mut self, head: &[u8], how: How, repeat: u32) -> (u32, Duration) {
        let frame = [&[0; 12][..], &(how as u16).to_be_bytes(), head].concat();
        let program = self.program("agree");
        let input = ProgramInput { data_in: Some(&frame), repeat, ..ProgramInput::default() };
        let output = program.test_run(input).expect("the program runs");
        (output.return_value, output.duration)
    }

    /// The framing that the program reads in a segment of requests that go up together; likewise at most 3,000 bytes.
    pub fn frame(&mut self, segment: &[u8]) -> Framing {
        let frame = [&[0; 14][..], segment].concat();
        let mut packet = vec![0; frame.len()];
        let input = ProgramInput {
            data_in: Some(&frame),
            data_out: Some(&mut packet),
            ..ProgramInput::default()
        };
        let taken = self.program("agree_framing").test_run(input).expect("the program runs");
        let taken = taken.return_value;
        let word =
            |at: usize| u32::from_ne_bytes(packet[at..at + 4].try_into().expect("four bytes"));
        Framing::new([taken, word(0), word(4), word(8)])
    }

    fn program(&self, name: &str) -> ProgramMut<'_> {
        self.0.progs_mut().find(|program| program.name() == name).expect("the program exists")
    }
}
