//! Both folders behave as one.

use super::*;
use std::io::ErrorKind;

/// Calls `test` with an empty folder in the file system and with one in memory.
fn each(test: impl Fn(&dyn Directory)) {
    let folder = tempfile::tempdir().expect("a folder");
    test(&FileDirectory::new(folder.path()));
    test(&MemoryDirectory::new());
}

fn put(folder: &dyn Directory, path: &str, text: &str) {
    folder.write(path, &mut |out| out.write_all(text.as_bytes())).expect("written");
}

#[test]
fn files_are_written_listed_read_and_removed() {
    each(|folder| {
        assert_eq!(folder.item("").expect("itself"), Item::Folder);
        put(folder, "b/c/d", "deep");
        put(folder, "b/a", "text");
        put(folder, "b/a", "longer text");
        assert_eq!(folder.names("b", 9).expect("a folder"), ["a", "c"]);
        assert_eq!(folder.names("b", 1).expect("a folder").len(), 1);
        assert_eq!(folder.item("b/a").expect("a file"), Item::File { bytes: 11 });
        assert_eq!(folder.item("b/c").expect("a folder"), Item::Folder);
        assert_eq!(folder.read("b/a", 6).expect("a file"), b"longer");
        assert_eq!(folder.read("b/c/d", 6).expect("a file"), b"deep");
        let open = folder.open("b/a").expect("a file");
        folder.remove("b/a").expect("removed");
        folder.remove("b/a").expect("nothing to remove");
        let mut bytes = [0; 4];
        open.read_at(7, &mut bytes).expect("an open file stays readable");
        assert_eq!(&bytes, b"text");
        assert_eq!(folder.names("b", 9).expect("a folder"), ["c"]);
    });
}

#[test]
fn what_is_not_there_or_of_another_kind_says_so() {
    each(|folder| {
        put(folder, "b/a", "text");
        for path in ["c", "b/c", "a"] {
            assert_eq!(folder.item(path).expect_err("nothing").kind(), ErrorKind::NotFound, "{path}");
            assert_eq!(folder.open(path).err().expect("nothing").kind(), ErrorKind::NotFound, "{path}");
            assert_eq!(folder.names(path, 9).expect_err("nothing").kind(), ErrorKind::NotFound, "{path}");
        }
        assert!(folder.names("b/a", 9).is_err(), "a file has no files");
        assert!(folder.open("b").is_err(), "a folder has no bytes");
        assert!(folder.remove("b").is_err(), "a folder is no file");
        assert!(folder.write("b", &mut |out| out.write_all(b"x")).is_err(), "a folder is no file");
        assert_eq!(folder.read("b/a", 9).expect("still there"), b"text");
    });
}

#[test]
fn a_file_whose_writing_fails_stays_as_it_was() {
    each(|folder| {
        put(folder, "a", "text");
        let error = folder.write("a", &mut |out| {
            out.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        });
        let error = error.expect_err("no room").to_string();
        assert!(error.starts_with(&folder.locate("a").display().to_string()), "{error}");
        assert_eq!(folder.read("a", 9).expect("a file"), b"text");
    });
}

#[test]
fn a_file_may_be_removed_while_another_is_written() {
    each(|folder| {
        put(folder, "old", "text");
        let write = &mut |out: &mut dyn Write| {
            out.write_all(b"new")?;
            folder.remove("old")
        };
        folder.write("new", write).expect("written");
        assert_eq!(folder.names("", 9).expect("itself"), ["new"]);
    });
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let outer = tempfile::tempdir().expect("a folder");
    std::fs::write(outer.path().join("secret"), "text").expect("written");
    let folder = FileDirectory::new(outer.path().join("inner"));
    put(&folder, "a", "text");
    let absolute = outer.path().join("secret").display().to_string();
    for path in ["../secret", "a/../../secret", "./a", "a//b", "/", "..\\secret", "a\0", absolute.as_str()] {
        assert_eq!(folder.open(path).err().expect("refused").kind(), ErrorKind::InvalidInput, "{path:?}");
        assert!(folder.write(path, &mut |out| out.write_all(b"x")).is_err(), "{path:?}");
        assert!(folder.item(path).is_err() && folder.names(path, 9).is_err() && folder.remove(path).is_err());
        assert!(MemoryDirectory::new().write(path, &mut |out| out.write_all(b"x")).is_err(), "{path:?}");
    }
    assert_eq!(std::fs::read(outer.path().join("secret")).expect("a file"), b"text");
}

#[test]
fn a_folder_that_only_reads_refuses_to_write() {
    struct Empty;
    impl Directory for Empty {
        fn item(&self, _path: &str) -> io::Result<Item> {
            Err(ErrorKind::NotFound.into())
        }
        fn names(&self, _folder: &str, _most: usize) -> io::Result<Vec<String>> {
            Ok(vec![])
        }
        fn open(&self, _path: &str) -> io::Result<Box<dyn Source>> {
            Err(ErrorKind::NotFound.into())
        }
        fn locate(&self, path: &str) -> PathBuf {
            path.into()
        }
    }
    let error = Empty.write("a", &mut |_| Ok(())).expect_err("read only").to_string();
    assert!(error.starts_with("a: cannot write: "), "{error}");
    assert!(Empty.remove("a").is_err());
}
