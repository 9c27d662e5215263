//! A saved session: the header's length in two bytes, a header and rows. The target adds valid
//! checksums.

#![no_main]

#[path = "../../crates/model/tests/common/mod.rs"]
mod common;

use common::Tiny;
use kernels::Executor;
use model::{KvType, Session, SessionOptions};
use sha2::{Digest, Sha256};
use std::cell::RefCell;

thread_local! {
    static SESSION: RefCell<Session> = {
        let options = SessionOptions::default().kv(KvType::F32).context(32);
        RefCell::new(Tiny::narrow().on(&Executor::Cpu).session(options).expect("room"))
    };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_at_checked(2) else { return };
    let length = usize::from(u16::from_le_bytes([length[0], length[1]])).min(rest.len());
    let (header, rows) = rest.split_at(length);
    let mut file = [&b"weft-kv\n"[..], &2_u32.to_le_bytes(), &(length as u32).to_le_bytes(), header].concat();
    file.extend_from_slice(&Sha256::digest(&file));
    file.extend_from_slice(rows);
    file.extend_from_slice(&Sha256::digest(&file));
    SESSION.with_borrow_mut(|session| {
        let before = (session.tokens().to_vec(), session.evaluated());
        match session.load(&mut &file[..]) {
            Ok(()) => {
                assert!(session.evaluated() <= session.tokens().len() && session.tokens().len() <= session.context())
            }
            Err(_) => assert_eq!((session.tokens(), session.evaluated()), (&before.0[..], before.1)),
        }
        // The file as it is, without checksums of ours.
        let _ = session.load(&mut &bytes[..]);
    });
});
