use std::fs::{self as files, Permissions};
use std::io::Seek as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

const LIMIT: usize = 100;

struct Folder {
    _temporary: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("folder").join("snapshot");
        Self { _temporary: temporary, path }
    }

    fn prepare(&self) -> anyhow::Result<Place> {
        Place::prepare(&self.path, LIMIT, None)
    }

    fn take(&self) -> anyhow::Result<(Marked, Left)> {
        self.prepare()?.take()
    }

    fn put(&self, content: &[u8]) {
        drop(self.prepare().unwrap());
        // It may be a link that a test has put there.
        let _ = files::remove_file(&self.path);
        files::write(&self.path, content).unwrap();
        self.permit(&self.path, 0o600);
    }

    fn permit(&self, path: &Path, mode: u32) {
        files::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn names(&self) -> Vec<OsString> {
        let entries = files::read_dir(self.path.parent().unwrap()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[track_caller]
    fn refuses(&self, expected: &str) {
        let error = format!("{:#}", self.take().unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
}

fn whole() -> Vec<u8> {
    [&MAGIC[..], b"rest"].concat()
}

fn write(content: &'static [u8]) -> impl FnOnce(&mut dyn Write) -> io::Result<()> {
    move |out| out.write_all(content)
}

#[test]
fn what_one_leaves_the_next_one_takes_and_nobody_else() {
    let folder = Folder::new();
    let (marked, left) = folder.take().unwrap();
    assert!(matches!(left, Left::Nothing("there is none")));
    let content: &'static [u8] = b"AFPAsnaprest";
    marked.replace(write(content)).unwrap();
    let found = files::metadata(&folder.path).unwrap();
    assert_eq!((found.mode() & 0o777, folder.names().len()), (0o600, 1));
    let (_killed, left) = folder.take().unwrap();
    let Left::Snapshot(mut file, len) = left else { panic!("{left:?}") };
    let mut read = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut read).unwrap();
    assert_eq!((&read[..], len), (content, content.len()));
    // It was not replaced, as by a process that was killed.
    let (_, left) = folder.take().unwrap();
    assert!(matches!(left, Left::Nothing(why) if why.contains("killed")));
}

#[test]
fn of_two_at_once_the_first_one_leaves_nothing() {
    let folder = Folder::new();
    let (first, _) = folder.take().unwrap();
    let (second, _) = folder.take().unwrap();
    let error = first.replace(write(b"AFPAsnap1")).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    second.replace(write(b"AFPAsnap2")).unwrap();
    assert_eq!(files::read(&folder.path).unwrap(), b"AFPAsnap2");
}

#[test]
fn what_cannot_be_written_leaves_the_mark() {
    let folder = Folder::new();
    let (marked, _) = folder.take().unwrap();
    let full = marked.replace(|out| -> io::Result<()> {
        out.write_all(b"AFPAsnap")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(full.is_err());
    assert_eq!((folder.names().len(), files::read(&folder.path).unwrap()), (1, Vec::new()));
    // A process that was killed while it wrote has left a part.
    files::write(folder.path.with_file_name("snapshot.next"), b"AFPA").unwrap();
    let (marked, _) = folder.take().unwrap();
    marked.replace(write(b"AFPAsnap")).unwrap();
    assert_eq!(folder.names(), ["snapshot"]);
}

#[test]
fn what_is_no_snapshot_is_left_alone() {
    let folder = Folder::new();
    folder.put(b"[[site]]\n");
    folder.refuses("something else than a snapshot");
    assert_eq!(files::read(&folder.path).unwrap(), b"[[site]]\n");
    folder.put(&whole());
    let precious = folder.path.with_file_name("precious");
    files::rename(&folder.path, &precious).unwrap();
    symlink(&precious, &folder.path).unwrap();
    folder.refuses("is a link");
    files::remove_file(&folder.path).unwrap();
    files::hard_link(&precious, &folder.path).unwrap();
    folder.refuses("not a file of this user's alone");
    assert_eq!(files::read(&precious).unwrap(), whole());
    for mode in [0o640, 0o602] {
        folder.put(&whole());
        folder.permit(&folder.path, mode);
        folder.refuses("not a file of this user's alone");
    }
    files::remove_file(&folder.path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &folder.path, OWN).unwrap();
    folder.refuses("not a file of this user's alone");
}

#[test]
fn what_is_too_long_is_not_read() {
    let folder = Folder::new();
    folder.put(&[&MAGIC[..], &[0; LIMIT]].concat());
    assert!(matches!(folder.take().unwrap().1, Left::Nothing(why) if why.contains("limit")));
    folder.put(&whole());
    assert!(matches!(folder.take().unwrap().1, Left::Snapshot(..)));
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = Folder::new();
    drop(folder.prepare().unwrap());
    let parent = folder.path.parent().unwrap();
    assert_eq!(files::metadata(parent).unwrap().mode() & 0o777, 0o700);
    for mode in [0o720, 0o702] {
        folder.permit(parent, mode);
        folder.refuses("alone");
    }
    folder.permit(parent, 0o755);
    let other = parent.with_file_name("other");
    files::rename(parent, &other).unwrap();
    symlink(&other, parent).unwrap();
    folder.refuses("cannot open");
}

#[test]
fn roots_folder_is_given_only_when_it_was_made() {
    const STRANGER: u32 = 12345;
    if !rustix::process::geteuid().is_root() {
        return println!("SKIP: not root");
    }
    let folder = Folder::new();
    let user = STRANGER.into();
    let owner = Identity { name: "somebody".to_owned(), uid: user, gid: STRANGER.into() };
    let prepare = || Place::prepare(&folder.path, LIMIT, Some(&owner));
    drop(prepare().unwrap());
    let parent = folder.path.parent().unwrap();
    assert_eq!(files::metadata(parent).unwrap().uid(), STRANGER);
    files::remove_dir(parent).unwrap();
    files::create_dir(parent).unwrap();
    let error = prepare().unwrap_err().to_string();
    assert!(error.contains("chown somebody"), "{error}");
    assert_eq!(files::metadata(parent).unwrap().uid(), 0);
    // A file of root's is none of this user's.
    files::write(&folder.path, whole()).unwrap();
    std::os::unix::fs::chown(&folder.path, Some(STRANGER), None).unwrap();
    folder.permit(&folder.path, 0o600);
    folder.refuses("not a file of this user's alone");
}
