//! Files on disk: every source, split files, files that change, paths that are not files, and the
//! atomic writer.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, FileSource, Gguf, GgufBuilder, JoinedSource, OpenOptions, Source, atomic_write};

fn part(number: u16, count: u16, total: i32) -> GgufBuilder<'static> {
    GgufBuilder::new().set("split.no", number).set("split.count", count).set("split.tensors.count", total)
}

/// Three parts of one model. Part i holds the tensor `blk.i`, eight elements of value i; the last
/// part holds one more.
fn parts() -> Vec<GgufBuilder<'static>> {
    let tensor = |builder: GgufBuilder<'static>, i: usize| builder.tensor_f32(format!("blk.{i}"), &[8], &[i as f32; 8]);
    vec![
        tensor(part(0, 3, 4).set("general.architecture", "qwen3").set("general.name", "m"), 0),
        tensor(part(1, 3, 4), 1),
        tensor(tensor(part(2, 3, 4), 2), 3),
    ]
}

fn path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("m-v1-{number:05}-of-00003.gguf"))
}

fn save(folder: &Path, parts: &[GgufBuilder<'_>]) {
    for (i, part) in parts.iter().enumerate() {
        part.save(path(folder, i + 1)).unwrap();
    }
}

fn fails(result: gguf::Result<Gguf>, words: &str) {
    let error = result.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(words), "{error:?} lacks {words:?}");
}

#[test]
fn any_part_opens_the_whole_split_file() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &parts());
    for (number, mmap) in [(1, false), (2, true), (3, false)] {
        let gguf = Gguf::open_with(path(folder.path(), number), OpenOptions::default().mmap(mmap)).unwrap();
        assert_eq!((gguf.architecture().unwrap(), gguf.tensors().len()), ("qwen3", 4));
        assert_eq!(gguf.path().unwrap(), path(folder.path(), 1));
        for i in 0..4 {
            let tensor = gguf.tensor(&format!("blk.{i}")).unwrap();
            assert_eq!(gguf.dequantized(tensor).unwrap(), [i as f32; 8]);
            assert_eq!(gguf.tensor_bytes(tensor).is_some(), mmap && cfg!(feature = "mmap"));
        }
    }
    let sources = parts().iter().map(|part| Box::new(part.to_bytes().unwrap()) as Box<dyn Source>).collect();
    let gguf = Gguf::from_parts(sources).unwrap();
    assert_eq!(gguf.dequantized(gguf.tensor("blk.3").unwrap()).unwrap(), [3.0; 8]);
    assert_eq!(gguf.architecture().unwrap(), "qwen3");
}

#[test]
fn split_files_with_wrong_parts_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (at, one) = (folder.path(), path(folder.path(), 1));
    save(at, &parts());
    fs::remove_file(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "part 2 of 3 is missing: ");
    fs::copy(path(at, 3), path(at, 2)).unwrap();
    fails(Gguf::open(&one), "part 2 does not belong to this model: `split.no` is 2, expected 1");
    part(1, 2, 4).save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "`split.count` is 2, expected 3");
    part(1, 3, 9).tensor_f32("blk.1", &[8], &[0.0; 8]).save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "`split.tensors.count` is 9, expected 4");
    let other = part(1, 3, 4).set("general.architecture", "gemma3").tensor_f32("blk.1", &[8], &[0.0; 8]);
    other.save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "`general.architecture` is \"gemma3\", expected \"qwen3\"");
    part(1, 3, 4).tensor_f32("blk.0", &[8], &[0.0; 8]).save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "tensor `blk.0` occurs twice");
    part(1, 3, 4).save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "`split.tensors.count` is 4, expected 3 (of all parts)");
    GgufBuilder::new().save(path(at, 2)).unwrap();
    fails(Gguf::open(&one), "`split.no` is missing, expected 1");
    fs::write(path(at, 2), b"GGUF").unwrap();
    fails(Gguf::open(&one), "00002-of-00003.gguf: the file ends within version");
}

#[test]
fn a_part_alone_asks_for_its_siblings() {
    let folder = tempfile::tempdir().unwrap();
    let renamed = folder.path().join("renamed.gguf");
    parts()[0].save(&renamed).unwrap();
    fails(Gguf::open(&renamed), "a file that is split into 3; name the parts like `model-00001-of-00003.gguf`");
    fails(Gguf::from_bytes(parts()[0].to_bytes().unwrap()), "one part of a file that is split into 3");
    let number_9 = folder.path().join("m-00009-of-00003.gguf");
    parts()[0].save(&number_9).unwrap();
    fails(Gguf::open(&number_9), "one part of a file that is split into 3");
    assert!(Gguf::from_parts(Vec::new()).is_err());
}

#[test]
fn a_file_that_shrinks_after_opening_gives_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ones = GgufBuilder::new().tensor_f32("t", &[4096], &[1.0; 4096]);
    for mmap in [false, true] {
        ones.save(file.path()).unwrap();
        let gguf = Gguf::open_with(file.path(), OpenOptions::default().mmap(mmap)).unwrap();
        let len = fs::metadata(file.path()).unwrap().len();
        fs::OpenOptions::new().write(true).open(file.path()).unwrap().set_len(len - 1).unwrap();
        let error = gguf.dequantized(gguf.tensor("t").unwrap()).unwrap_err().to_string();
        for words in ["cut short or replaced since it was opened", "tensor `t`", &file.path().display().to_string()] {
            assert!(error.contains(words), "{error} lacks {words}");
        }
    }
    // Only a caller who asks for it gets a map.
    ones.save(file.path()).unwrap();
    let gguf = Gguf::open(file.path()).unwrap();
    assert!(gguf.tensor_bytes(gguf.tensor("t").unwrap()).is_none());
    // The atomic writer replaces the file by a rename, so the open file keeps the old content.
    ones.save(file.path()).unwrap();
    let gguf = Gguf::open(file.path()).unwrap();
    GgufBuilder::new().tensor_f32("t", &[4096], &[2.0; 4096]).save(file.path()).unwrap();
    assert!(gguf.dequantized(gguf.tensor("t").unwrap()).unwrap() == [1.0; 4096]);
}

#[test]
fn paths_that_are_no_readable_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fails(Gguf::open(folder.path()), "this is a directory, not a regular file");
    fails(Gguf::open(folder.path().join("absent.gguf")), "absent.gguf: cannot open");
    let empty = folder.path().join("empty.gguf");
    fs::write(&empty, b"").unwrap();
    fails(Gguf::open(&empty), "empty.gguf: the file ends within magic at offset 0: 4 bytes needed, 0 left");
}

#[cfg(unix)]
#[test]
fn pipes_and_unreadable_files_are_refused_without_blocking() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fails(Gguf::open(&pipe), "this is a pipe or a device, not a regular file");
    fails(Gguf::open("/dev/null"), "this is a pipe or a device, not a regular file");
    let secret = folder.path().join("secret.gguf");
    GgufBuilder::new().save(&secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read any file; opening the file then succeeds.
    if fs::File::open(&secret).is_err() {
        fails(Gguf::open(&secret), "secret.gguf: cannot open");
    } else {
        assert!(Gguf::open(&secret).is_ok());
    }
}

#[test]
fn every_source_reads_the_same_and_stops_at_its_end() {
    let bytes: Vec<u8> = (0..100).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &bytes).unwrap();
    let halves: Vec<Box<dyn Source>> =
        vec![Box::new(bytes[..40].to_vec()), Box::new(Vec::new()), Box::new(bytes[40..].to_vec())];
    #[cfg_attr(not(feature = "mmap"), allow(unused_mut))]
    let mut sources: Vec<Box<dyn Source>> = vec![
        Box::new(bytes.clone()),
        Box::new(Arc::<[u8]>::from(bytes.as_slice())),
        Box::new(&*bytes.clone().leak()),
        Box::new(FileSource::open(file.path()).unwrap()),
        Box::new(JoinedSource::new(halves)),
    ];
    #[cfg(feature = "mmap")]
    sources.push(Box::new(gguf::MapSource::open(file.path()).unwrap()));
    for source in sources {
        assert_eq!(source.len_bytes(), 100);
        let mut buf = [0; 30];
        for offset in [0, 25, 39, 40, 70] {
            source.read_at(offset, &mut buf).unwrap();
            assert_eq!(buf, bytes[offset as usize..][..30]);
            assert!(source.slice(offset, 30).is_none_or(|slice| slice == buf));
        }
        source.read_at(100, &mut []).unwrap();
        for offset in [71, 100, u64::MAX] {
            assert_eq!(source.read_at(offset, &mut buf).unwrap_err().kind(), ErrorKind::UnexpectedEof, "{offset}");
            assert!(source.slice(offset, 30).is_none());
        }
    }
}

fn entries(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A writer that was killed leaves its temporary file without a lock.
#[test]
fn the_next_write_removes_what_a_killed_writer_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.bin");
    let names = |count: usize| {
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), count, "{names:?}");
    };
    for left in [
        ".cache.bin.0123456789abcdef.tmp",
        ".cache.bin.0123456789abcde.tmp",
        ".cache.bin2.0123456789abcdef.tmp",
        ".cache.bin.tmp",
    ] {
        fs::write(folder.path().join(left), "part").unwrap();
    }
    atomic_write(&path, |out| {
        // Another writer of the same file leaves the file of this one.
        names(4);
        atomic_write(&path, |inner| inner.write_all(b"inner")).unwrap();
        names(5);
        out.write_all(b"outer")
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"outer");
    // The others are not files of this kind, or belong to another file.
    names(4);
}

#[test]
fn atomic_writes_replace_whole_files_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    atomic_write(&path, |out| out.write_all(b"first")).unwrap();
    let error = atomic_write(&path, |out| {
        out.write_all(b"half")?;
        Err(ErrorKind::StorageFull.into())
    });
    assert!(error.unwrap_err().to_string().contains("cannot write"));
    let panicked = std::panic::catch_unwind(|| atomic_write(&path, |_| panic!("in the middle")));
    assert!(panicked.is_err());
    assert_eq!((fs::read(&path).unwrap(), entries(folder.path())), (b"first".to_vec(), vec!["file".to_owned()]));
    atomic_write(&path, |out| out.write_all(b"second")).unwrap();
    assert_eq!((fs::read(&path).unwrap(), entries(folder.path()).len()), (b"second".to_vec(), 1));
    assert!(matches!(atomic_write(folder.path().join("no/such"), |_| Ok(())), Err(Error::InFile { .. })));
    let broken = GgufBuilder::new().tensor_f32("t", &[2], &[0.0]);
    assert!(broken.save(&path).unwrap_err().to_string().contains("file: tensor `t` has 4 bytes"));
    assert_eq!(fs::read(&path).unwrap(), b"second");
}

#[cfg(unix)]
#[test]
fn atomic_writes_keep_permissions_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("file", &link).unwrap();
    atomic_write(&link, |out| out.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_written_and_stay_what_they_are() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    atomic_write(&pipe, |out| out.write_all(b"through")).unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    // The device is behind a link, so that a wrong rename could only change the folder of the link.
    let full = folder.path().join("full");
    symlink("/dev/full", &full).unwrap();
    let error = atomic_write(&full, |out| out.write_all(b"too much")).unwrap_err().to_string();
    assert!(error.contains("full: cannot write: No space left on device"), "{error}");
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    assert_eq!(entries(folder.path()).len(), 2);
}
