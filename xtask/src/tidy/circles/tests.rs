//! Tests of imports that count for circles and imports that do not.

use super::tokens::tokens;
use super::*;

/// The line and the findings of a crate whose largest circle may have some number of files.
fn found(circle: usize, files: &[(&str, &str)]) -> (String, Vec<String>) {
    let krate = Counted { name: "kernels", src: "crates/kernels/src/", root: "lib.rs", circle };
    let mut found = vec![];
    let line = circles(&krate, &files.iter().copied().collect(), &mut found);
    (line, found)
}

/// The imports between files other than the root, as `from -> to (path)`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().copied().collect();
    let (_, imports) = imports("lib.rs", &files);
    let edges = imports.iter().filter(|((from, _), _)| *from != "lib.rs");
    edges.map(|((from, to), path)| format!("{from} -> {to} ({path})")).collect()
}

#[test]
fn circle_through_a_re_export() {
    let files = [
        ("lib.rs", "pub mod a;\npub mod device;\npub use device::*;\n"),
        ("a.rs", "use crate::{Device as Gpu, missing::Name};\npub struct A(Gpu);\n"),
        ("device/mod.rs", "mod own;\nmod other;\npub use own::Own as Device;\n"),
        ("device/own.rs", "pub struct Own;\nfn f() -> crate::a::A { g() }\n"),
        ("device/other.rs", "fn f() {}\n"),
    ];
    let a = "a.rs -> device/own.rs (crate::Device)";
    let rest = [
        "a.rs -> lib.rs (crate::missing::Name)",
        "device/mod.rs -> device/own.rs (own::Own)",
        "device/own.rs -> a.rs (crate::a::A)",
    ];
    assert_eq!(edges(&files), [&[a], &rest[..]].concat());
    let (line, found) =
        found(2, &[&files[..1], &[("a.rs", "use crate::Device;\npub struct A;\n")], &files[2..]].concat());
    let counted = "kernels: 5 files, largest import circle 2 (a.rs, device/own.rs), no circle between folders; \
        counted: use declarations and paths, re-exports followed, tests left out";
    assert_eq!((line.as_str(), found.len()), (counted, 0));
}

#[test]
fn relative_paths() {
    let files = [
        ("lib.rs", "mod a;\n"),
        (
            "a.rs",
            "pub mod b;\npub mod c;\nuse b::One;\nmod inside { use super::c::Two; }\nfn f() { b::g::<u8>(); self::c::h(); }\n",
        ),
        ("a/b.rs", "mod inside { fn f() { super::super::c::g(); } }\npub struct One;\n"),
        ("a/c/mod.rs", "use super::{self as up, b::{self}, *};\nfn f() -> up::Own { b::One }\n"),
    ];
    let expected = [
        "a.rs -> a/b.rs (b::One)",
        "a.rs -> a/c/mod.rs (self::c::h)",
        "a/b.rs -> a/c/mod.rs (super::super::c::g)",
        "a/c/mod.rs -> a.rs (super)",
        "a/c/mod.rs -> a/b.rs (super::b)",
    ];
    assert_eq!(edges(&files), expected);
}

#[test]
fn globs_that_lead_back_to_themselves() {
    let files = [
        ("lib.rs", "pub mod a;\npub mod b;\nmod c;\npub use a::*;\n"),
        ("a.rs", "pub use crate::b::*;\n"),
        ("b.rs", "pub use crate::a::*;\npub struct B;\n"),
        ("c.rs", "use crate::{B, missing};\n"),
    ];
    assert_eq!(
        edges(&files),
        [
            "a.rs -> b.rs (crate::b)",
            "b.rs -> a.rs (crate::a)",
            "c.rs -> b.rs (crate::B)",
            "c.rs -> lib.rs (crate::missing)"
        ]
    );
}

#[test]
fn what_does_not_count() {
    let files = [
        ("lib.rs", "pub mod a;\npub mod b;\n"),
        ("a.rs", "use crate::b::B;\npub struct A;\n"),
        (
            "b.rs",
            r##"
            /// As [`crate::a::A`]. /* crate::a::A
            pub struct B<'a> { #[cfg(test)] a: crate::a::A, text: &'a str }
            const TEXT: (char, &str, &str) = ('"', "\" crate::a::A", r#"" crate::a::A "#);
            use other::a::A; use ::a::A as _;
            fn f() { T::crate_a(); <T as Into<u8>>::a::A(); crate::a!(); $a::A; }
            #[cfg(test)]
            fn test<A, B>(a: Map<A, B>) -> crate::a::A { crate::a::A }
            #[cfg(test)]
            #[path = "b/tests.rs"]
            mod tests;
            #[cfg(all(test, unix))]
            mod more { use crate::a::A; }
            "##,
        ),
        ("b/tests.rs", "use crate::a::A;\n"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b.rs (crate::b::B)"]);
    assert!(found(1, &files).0.starts_with("kernels: 3 files, largest import circle 1, no circle between folders;"));
}

#[test]
fn paths_in_macros() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("a.rs", "macro_rules! make { ($x:ident) => { $crate::b::f($x::g()) } }\n"),
        ("b.rs", "each! { c::C, }\nuse crate::c;\n"),
        ("c.rs", "kernel! { C: \"c\" }\nfn f() { if crate::b::N != 0 {} make!(1) }\n"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b.rs (crate::b::f)", "b.rs -> c.rs (c::C)", "c.rs -> b.rs (crate::b::N)"]);
}

#[test]
fn circle_between_folders() {
    let files = [
        ("lib.rs", "mod error;\nmod exec;\nmod graph;\nmod plan;\n"),
        ("error.rs", "use crate::plan::Plan;\n"),
        ("exec/mod.rs", "use crate::plan::Plan;\nuse crate::error::Error;\n"),
        ("graph/mod.rs", "pub struct Graph;\n"),
        ("plan/mod.rs", "mod place;\nuse crate::graph::Graph;\nuse crate::exec::A;\npub struct Plan;\n"),
        ("plan/place.rs", "use crate::exec::B;\n"),
    ];
    let message = "kernels: the folders exec, plan import each other:\
        \n  exec -> plan, 1 in all, such as exec/mod.rs -> plan/mod.rs (crate::plan::Plan)\
        \n  plan -> exec, 2 in all, such as plan/mod.rs -> exec/mod.rs (crate::exec::A)";
    let (line, found) = found(3, &files);
    assert_eq!(found, [message]);
    assert!(
        line.contains("largest import circle 3 (error.rs, exec/mod.rs, plan/mod.rs), 1 circle between folders;"),
        "{line}"
    );
}

#[test]
fn circle_larger_or_smaller_than_its_limit() {
    let names: Vec<_> = (0..3).map(|i| (format!("m{i}.rs"), format!("use crate::m{}::X;\n", (i + 1) % 3))).collect();
    let root = ("lib.rs", "mod m0;\nmod m1;\nmod m2;\n");
    let files: Vec<_> = names.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain([root]).collect();
    assert_eq!(found(2, &files).1, ["kernels: 3 files import each other, at most 2: (m0.rs, m1.rs, m2.rs)"]);
    assert!(found(3, &files).1.is_empty());
    assert_eq!(
        found(4, &files).1,
        ["kernels: the limit of files that import each other is 4, the largest circle has 3; lower the limit"]
    );
    let without = [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", "use crate::b::B;\n"), ("b.rs", "pub struct B;\n")];
    assert!(found(1, &without).1.is_empty());
    assert_eq!(
        found(2, &without).1,
        ["kernels: the limit of files that import each other is 2, the largest circle has 1; lower the limit"]
    );
}

#[test]
fn paths_and_imports_in_bodies() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
        ("a.rs", "impl A { fn f(&self) -> bool { if self.0 { crate::b::g().then(|| 1) } else { None } } }\n"),
        ("b.rs", "fn g() { match 1 { _ => { use crate::c::{C as Other}; Other::new() } } }\n"),
        ("c.rs", "use crate as root;\nfn h(x: Vec<root::d::D>) { (1..2).map(super::a::A); }\n"),
        ("d.rs", "fn k(x: &dyn Fn(&crate::a::A) -> u8) {}\n"),
    ];
    let expected = [
        "a.rs -> b.rs (crate::b::g)",
        "b.rs -> c.rs (crate::c::C)",
        "c.rs -> a.rs (super::a::A)",
        "c.rs -> d.rs (root::d::D)",
        "c.rs -> lib.rs (crate)",
        "d.rs -> a.rs (crate::a::A)",
    ];
    assert_eq!(edges(&files), expected);
    assert!(found(4, &files).0.contains("largest import circle 4 (a.rs, b.rs, c.rs, d.rs)"));
}

#[test]
fn methods_with_the_name_of_a_module() {
    let files = [
        ("lib.rs", "mod a;\n"),
        (
            "a.rs",
            "mod b;\nmod text;\nunsafe impl<T> A<T> { fn text(&self) -> impl Fn() { f } }\npub trait T { fn text(); }\nfn own() {}\n",
        ),
        ("a/b.rs", "use super::{T, own, text};\n"),
        ("a/text.rs", "pub struct Text;\n"),
    ];
    let (own, module) = ("a/b.rs -> a.rs (super::T)", "a/b.rs -> a/text.rs (super::text)");
    assert_eq!(edges(&files), [own, module]);
    assert_eq!(edges(&[&files[..2], &[("a/b.rs", "use super::text;\n")], &files[3..]].concat()), [module]);
}

#[test]
fn crate_without_its_root_or_its_row() {
    assert_eq!(found(1, &[("a.rs", "")]).1, ["kernels: no crates/kernels/src/lib.rs"]);
    let files = ["crates/kernels/src/lib.rs", "crates/more/src/lib.rs", "crates/more/src/a/lib.rs", "src/lib.rs"];
    assert_eq!(
        uncounted(files.into_iter()),
        ["crates/more/src/lib.rs: its crate is not in the table of import circles"]
    );
    assert_eq!(uncounted(["tools/src/main.rs"].into_iter()).len(), 1);
}

#[test]
fn source_without_literals() {
    let text = "a/*/* b */ c*/::r#type<'b>(b'\\'', br#\"c\"#, '\\u{1}', 'd', \"e\\\"\", 1.5e3, c\"f\") // g\n'h: loop";
    assert_eq!(tokens(text).concat(), "a::type<>(,,,,,.,):loop");
}
