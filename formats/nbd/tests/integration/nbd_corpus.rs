//! Server side: replays the fuzzing corpus, unmodified and corrupted, with the fuzz target's
//! oracle.

use crate::replay;
use std::path::Path;

use crate::nbd_client::{
    Ask, BLOCK_STATUS, CACHE, DF, DISC, FAST_ZERO, FLUSH, FUA, PAYLOAD_LEN, READ, REQ_ONE, TRIM,
    WRITE, WRITE_ZEROES, info, meta, option,
};
use crate::nbd_disk::DISK_BYTES;
use crate::nbd_oracle::{Outcome, check};
use suimon_nbd::Framing;

/// Environment variable that rewrites the seeds after a change to the scripts.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

/// Returns the bytes that a client with fixed newstyle and `NBD_FLAG_C_NO_ZEROES` sends for these
/// options. `config` is the header of the fuzz input.
fn shake(config: [u8; 2], options: &[Vec<u8>]) -> Vec<u8> {
    [&config[..], &[0, 0, 0, 3], &options.concat()].concat()
}

fn ask(framing: Framing, kind: u16, flags: u16, offset: u64, length: u64) -> Vec<u8> {
    let flags = flags | if framing == Framing::Extended && kind == WRITE { PAYLOAD_LEN } else { 0 };
    let mut bytes = Ask { flags, kind, cookie: offset ^ length, offset, length }.bytes(framing);
    if kind == WRITE {
        bytes.resize(bytes.len() + length as usize, 0xa5);
    }
    bytes
}

/// Returns one request of each kind, some invalid requests, and a disconnect.
fn requests(framing: Framing) -> Vec<u8> {
    let ask = |kind, flags, offset, length| ask(framing, kind, flags, offset, length);
    let df = if framing == Framing::Simple { 0 } else { DF };
    let requests = [
        ask(READ, 0, 512, 30 * 1024),
        ask(READ, df, 4096, 8192),
        ask(READ, 0, DISK_BYTES - 512, 1024),
        ask(READ, 0, 0, 128 * 1024),
        ask(WRITE, FUA, 1024, 512),
        ask(WRITE, 0, DISK_BYTES, 512),
        ask(FLUSH, 0, 0, 0),
        ask(TRIM, 0, 0, DISK_BYTES),
        ask(CACHE, 0, 0, 4096),
        ask(WRITE_ZEROES, FAST_ZERO, 4096, 4096),
        ask(BLOCK_STATUS, 0, 0, DISK_BYTES),
        ask(BLOCK_STATUS, REQ_ONE, 4096, 512),
        ask(9, 0, 0, 512),
        ask(DISC, 0, 0, 0),
    ];
    requests.concat()
}

type Seed = (&'static str, Vec<u8>, Outcome);

/// Returns seeds of clients that select a disk and access it, with each message format.
fn request_seeds() -> Vec<Seed> {
    let go = || info(7, "a", &[3]);
    let allocation = || meta(10, "a", &["base:allocation"]);
    let contexts = Ask { flags: PAYLOAD_LEN, kind: BLOCK_STATUS, cookie: 7, offset: 0, length: 12 };
    let named = [&8192u64.to_be_bytes()[..], &1u32.to_be_bytes()].concat();
    // QEMU's extended writes lack `NBD_CMD_FLAG_PAYLOAD_LEN`.
    let unflagged = Ask { flags: 0, kind: WRITE, cookie: 8, offset: 0, length: 512 };
    let extended = [
        contexts.bytes(Framing::Extended),
        named,
        unflagged.bytes(Framing::Extended),
        vec![0x5a; 512],
        requests(Framing::Extended),
    ];
    let outcome = |handled, framing, carried_out, turned_down| Outcome {
        answered: handled,
        framing: Some(framing),
        carried_out,
        turned_down,
        has_left: true,
        ..Outcome::default()
    };
    let seed = |name, config, options: &[Vec<u8>], requests: Vec<u8>, outcome| {
        (name, [shake([config, 0], options), requests].concat(), outcome)
    };
    vec![
        seed("simple", 0, &[go()], requests(Framing::Simple), outcome(0, Framing::Simple, 7, 6)),
        seed(
            "structured",
            0,
            &[option(8, &[]), allocation(), go()],
            requests(Framing::Structured),
            outcome(2, Framing::Structured, 9, 4),
        ),
        seed(
            "extended",
            0,
            &[option(11, &[]), allocation(), go()],
            extended.concat(),
            outcome(2, Framing::Extended, 11, 4),
        ),
        seed("read-only", 1, &[go()], requests(Framing::Simple), outcome(0, Framing::Simple, 4, 9)),
    ]
}

/// Returns seeds of clients that send all kinds of options.
fn handshake_seeds() -> Vec<Seed> {
    let by_name = [
        vec![0, 0, 0, 0, 0, 1],
        option(1, b"a"),
        ask(Framing::Simple, READ, 0, 0, 512),
        b"something else than a request".to_vec(),
    ];
    let cut = Outcome {
        framing: Some(Framing::Simple),
        carried_out: 1,
        was_cut: true,
        ..Outcome::default()
    };
    let tls =
        [info(7, "a", &[]), option(5, &[]), option(5, &[]), option(8, &[]), option(2, b"bye")];
    let leaving = Outcome { answered: 2, refused: 2, has_left: true, ..Outcome::default() };
    let questions = [
        option(3, &[]),
        info(6, "", &[0, 1, 2, 3, 99]),
        info(6, "nowhere", &[]),
        option(8, &[]),
        meta(9, "large", &[]),
        meta(9, "a", &["base:", "x-other:"]),
        meta(10, "a", &["allocation"]),
        info(7, "large", &[]),
        option(77, b"data"),
    ];
    let staying = Outcome { answered: 5, refused: 4, ..Outcome::default() };
    vec![
        ("by-name", by_name.concat(), cut),
        ("tls", shake([0, 2], &tls), leaving),
        ("questions", shake([0, 0], &questions), staying),
    ]
}

#[test]
fn corpus_contains_each_client_and_its_expected_result() {
    for (name, input, expected) in [request_seeds(), handshake_seeds()].concat() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nbd");
        let path = path.join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::write(&path, &input).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert_eq!(stored, input, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
        assert_eq!(check(&input), expected, "{name}");
    }
}

#[test]
fn corpus_passes_unmodified_and_corrupted() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("nbd", check);
    replay::damaged_corpus_passes("nbd", check);
    replay::any_bytes_pass(check);
}
