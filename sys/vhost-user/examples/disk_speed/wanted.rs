//! What is asked for on the command line.

use std::time::Duration;

use crate::driver::{Load, SIZE};
use crate::{Behind, Peer};

const USAGE: &str = "usage: disk_speed [--json] [--block-kib N] [--read-percent N] [--sequential]
    [--disk-mib N] [--wait] ROUNDS SECONDS DEPTH 'NAME: COMMAND'…, or with --socket PATH no command";

/// How to measure.
pub(crate) struct Wanted {
    pub(crate) is_json: bool,
    /// Sleep instead of polling.
    pub(crate) is_waiting: bool,
    pub(crate) load: Load,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) depth: u16,
}

impl Wanted {
    /// # Panics
    /// Something else was written than the usage says.
    pub(crate) fn of_arguments() -> (Self, Vec<Peer>) {
        let mut load =
            Load { bytes: 4096, read_percent: 100, is_random: true, disk_bytes: 256 << 20 };
        let (mut is_json, mut is_waiting, mut socket) = (false, false, None);
        let mut words = std::env::args().skip(1).peekable();
        while let Some(option) = words.next_if(|word| word.starts_with("--")) {
            let mut number = || {
                let text = words.next().expect(USAGE);
                text.parse::<u64>().unwrap_or_else(|_| panic!("{option}: `{text}`; {USAGE}"))
            };
            match option.as_str() {
                "--json" => is_json = true,
                "--wait" => is_waiting = true,
                "--sequential" => load.is_random = false,
                "--block-kib" => load.bytes = number() << 10,
                "--read-percent" => load.read_percent = number(),
                "--disk-mib" => load.disk_bytes = number() << 20,
                "--socket" => socket = Some(words.next().expect(USAGE)),
                _ => panic!("{option}; {USAGE}"),
            }
        }
        let words: Vec<String> = words.collect();
        let [rounds, seconds, depth, peers @ ..] = &words[..] else { panic!("{USAGE}") };
        let rounds: usize = rounds.parse().expect("ROUNDS");
        let depth: u16 = depth.parse().expect("DEPTH");
        let time = Duration::from_secs_f64(seconds.parse().expect("SECONDS"));
        assert!(rounds > 0 && (1..=SIZE).contains(&depth), "at least one round; depth 1 to {SIZE}");
        assert!((1..=load.disk_bytes).contains(&load.bytes), "a disk is as long as a request");
        let mut peers: Vec<Peer> = peers.iter().map(|text| started(text)).collect();
        peers.extend(socket.map(|socket| Peer {
            name: socket.clone(),
            behind: Behind::Socket(socket.into()),
            rounds: Vec::new(),
        }));
        (Self { is_json, is_waiting, load, rounds, time, depth }, peers)
    }
}

fn started(text: &str) -> Peer {
    let (name, command) = text.split_once(": ").expect("NAME: COMMAND");
    let behind = Behind::Command(command.to_owned());
    Peer { name: name.to_owned(), behind, rounds: Vec::new() }
}
