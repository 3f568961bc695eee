//! Parsing of the command line.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::front_end::{EVENT_INDEX, INDIRECT};
use crate::memory::ENTRIES;
use crate::requests::Load;
use crate::{Behind, Peer};

const USAGE: &str = "usage: disk_speed [--json] [--block-kib N] [--read-percent N] [--sequential] \
    [--disk-mib N] [--wait] [--packed] [--without event-index|indirect] ROUNDS SECONDS DEPTH \
    'NAME: COMMAND'…, or with --socket PATH no command";

/// Parameters of a benchmark, from the command line.
pub(crate) struct Parameters {
    pub(crate) is_json: bool,
    /// Sleep until an interrupt instead of polling.
    pub(crate) uses_interrupts: bool,
    pub(crate) is_packed: bool,
    /// Optional virtio features to negotiate if the back-end offers them.
    pub(crate) features: u64,
    pub(crate) load: Load,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) depth: u16,
}

impl Parameters {
    /// Parses the arguments of the process.
    ///
    /// # Errors
    /// The arguments do not match the usage text.
    pub(crate) fn parse() -> Result<(Self, Vec<Peer>)> {
        let mut load =
            Load { bytes: 4096, read_percent: 100, is_random: true, disk_bytes: 256 << 20 };
        let (mut is_json, mut is_waiting, mut is_packed, mut socket) = (false, false, false, None);
        let mut features = EVENT_INDEX | INDIRECT;
        let mut arguments = std::env::args().skip(1).peekable();
        while let Some(option) = arguments.next_if(|argument| argument.starts_with("--")) {
            let mut value =
                || arguments.next().with_context(|| format!("{option} needs a value; {USAGE}"));
            let number = |text: String| text.parse::<u32>().map(u64::from);
            let number = |text: String| {
                number(text.clone()).with_context(|| format!("{option}: `{text}` is no number"))
            };
            match option.as_str() {
                "--json" => is_json = true,
                "--wait" => is_waiting = true,
                "--packed" => is_packed = true,
                "--sequential" => load.is_random = false,
                "--block-kib" => load.bytes = number(value()?)? << 10,
                "--read-percent" => load.read_percent = number(value()?)?,
                "--disk-mib" => load.disk_bytes = number(value()?)? << 20,
                "--socket" => socket = Some(value()?),
                "--without" => match value()?.as_str() {
                    "event-index" => features &= !EVENT_INDEX,
                    "indirect" => features &= !INDIRECT,
                    other => bail!("--without: `{other}` is not event-index or indirect"),
                },
                _ => bail!("there is no option {option}; {USAGE}"),
            }
        }
        let positional: Vec<String> = arguments.collect();
        let [rounds, seconds, depth, peers @ ..] = &positional[..] else { bail!("{USAGE}") };
        let invalid = |name: &str, text: &str| format!("{name}: `{text}` is no number; {USAGE}");
        let rounds: usize = rounds.parse().with_context(|| invalid("ROUNDS", rounds))?;
        let depth: u16 = depth.parse().with_context(|| invalid("DEPTH", depth))?;
        let seconds: f64 = seconds.parse().with_context(|| invalid("SECONDS", seconds))?;
        let time = Duration::try_from_secs_f64(seconds).context("SECONDS")?;
        ensure!(rounds > 0, "ROUNDS is 1 or more");
        ensure!((1..=ENTRIES).contains(&depth), "DEPTH is from 1 to {ENTRIES}");
        ensure!(load.bytes > 0, "--block-kib is 1 or more");
        ensure!(load.disk_bytes >= load.bytes, "--disk-mib is less than a request");
        let mut peers: Vec<Peer> = peers.iter().map(|text| started(text)).collect::<Result<_>>()?;
        peers.extend(socket.map(|socket| Peer {
            name: socket.clone(),
            behind: Behind::Socket(socket.into()),
            rounds: Vec::new(),
        }));
        ensure!(!peers.is_empty(), "no back-end was given; {USAGE}");
        let parameters = Self {
            is_json,
            uses_interrupts: is_waiting,
            is_packed,
            features,
            load,
            rounds,
            time,
            depth,
        };
        Ok((parameters, peers))
    }
}

fn started(text: &str) -> Result<Peer> {
    let (name, command) =
        text.split_once(": ").with_context(|| format!("`{text}` is not NAME: COMMAND; {USAGE}"))?;
    let behind = Behind::Command(command.to_owned());
    Ok(Peer { name: name.to_owned(), behind, rounds: Vec::new() })
}
