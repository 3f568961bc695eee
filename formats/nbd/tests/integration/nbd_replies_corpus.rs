//! Client side: replays the fuzzing corpus, unmodified and corrupted, with the fuzz target's
//! oracle.

use crate::replay;
use std::path::Path;

use crate::nbd_replies_oracle::{Shaken, check};

/// Environment variable that rewrites the seeds after a change to the scripts.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
    bytes.extend([option.to_be_bytes(), kind.to_be_bytes()].concat());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn chunk(flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33ef_u32.to_be_bytes().to_vec();
    bytes.extend([flags.to_be_bytes(), kind.to_be_bytes()].concat());
    bytes.extend(7_u64.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns the messages of a server in a handshake; the server rejects option number `refuses`
/// unless that is 0.
fn handshake(refuses: u32) -> Vec<u8> {
    let export = [&[0, 0][..], &(64_u64 << 20).to_be_bytes(), &0x4d_u16.to_be_bytes()].concat();
    let sizes = [&[0, 3][..], &[0, 0, 2, 0], &[0, 0, 16, 0], &[2, 0, 0, 0]].concat();
    let contexts = match refuses {
        0 => [reply(10, 4, b"\0\0\0\x01base:allocation"), reply(10, 1, &[])].concat(),
        error => reply(10, error, b"no"),
    };
    let go = [reply(7, 3, &export), reply(7, 3, &sizes), reply(7, 1, &[])].concat();
    [b"NBDMAGICIHAVEOPT\x00\x03".to_vec(), reply(8, 1, &[]), contexts, go].concat()
}

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let simple = [&0x6744_6698_u32.to_be_bytes()[..], &5_u32.to_be_bytes(), &[7; 8]].concat();
    let data = [&4096_u64.to_be_bytes()[..], &[9; 32]].concat();
    let hole = [&8192_u64.to_be_bytes()[..], &512_u32.to_be_bytes()].concat();
    let extents = [&1_u32.to_be_bytes()[..], &[0, 0, 2, 0, 0, 0, 0, 3], &[0, 1, 0, 0, 0, 0, 0, 0]];
    let failed = [&28_u32.to_be_bytes()[..], &[0, 2], b"no"].concat();
    let replies = [
        vec![0],
        simple,
        chunk(0, 1, &data),
        chunk(1, 2, &hole),
        chunk(1, 5, &extents.concat()),
        chunk(1, 0x8001, &failed),
        chunk(1, 0, &[]),
    ];
    vec![
        ("seed-handshake", [vec![5], handshake(0)].concat()),
        ("seed-no-context", [vec![1], handshake(1 << 31 | 1)].concat()),
        ("seed-replies", replies.concat()),
    ]
}

#[test]
fn the_seeds_are_those_of_the_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nbd_replies");
    for (name, bytes) in seeds() {
        let path = folder.join(name);
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
    }
}

#[test]
fn scripts_reach_their_expected_result() {
    let results: Vec<Option<Shaken>> = seeds().iter().map(|(_, bytes)| check(bytes)).collect();
    let [Some(Shaken::Agreed(with, 0)), Some(Shaken::Agreed(without, 0)), None] = &results[..]
    else {
        panic!("{results:?}");
    };
    assert_eq!((with.allocation_context_id, without.allocation_context_id), (Some(1), None));
    assert_eq!((with.size, with.block_sizes.min), (64 << 20, 512));
}

#[test]
fn the_corpus_passes() {
    replay::corpus_passes("nbd_replies", |input| drop(check(input)));
}

#[test]
fn damaged_inputs_pass() {
    replay::damaged_corpus_passes("nbd_replies", |input| drop(check(input)));
}

#[test]
fn any_bytes_pass() {
    replay::any_bytes_pass(|input| drop(check(input)));
}
