//! Soak test: a daemon with every kind of back-end under every kind of load. Its memory,
//! descriptors, threads and files must not grow.
//!
//! `SUIMON_SOAK_MINUTES` is the minimum duration. The test continues until `SUIMON_SOAK_REQUESTS`
//! requests, `SUIMON_SOAK_CALLS` API calls and `SUIMON_SOAK_CONNECTIONS` connections are complete.

#[path = "../../../../../sys/vhost-user/tests/integration/bench/mod.rs"]
mod bench;
mod checkpoint;
mod client;
mod control;
mod disks;
mod gate;
mod memory;
mod network;
mod site;

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use checkpoint::{Checkpoint, Watched};
use client::Client;
use gate::{EndGuard, Gate, Tally};
use site::Site;

/// Interval of checkpoints.
const PERIOD: Duration = Duration::from_secs(60);
/// Time after which a checkpoint becomes the baseline of later ones.
const WARM_UP: Duration = Duration::from_secs(120);
/// Maximum number of events that a daemon keeps. Until then, each event increases its memory.
const EVENTS_MAX: u64 = 10_000;
/// Permitted growth of anonymous memory in KiB.
const GROWTH_MAX: u64 = 1024;

/// Minimum duration and work of the loads.
struct Goals {
    time: Duration,
    requests: u64,
    calls: u64,
    connections: u64,
}

impl Goals {
    fn of_environment() -> Self {
        let number = |name: &str, otherwise: u64| {
            std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
        };
        Self {
            time: Duration::from_secs(60 * number("SUIMON_SOAK_MINUTES", 12)),
            requests: number("SUIMON_SOAK_REQUESTS", 0),
            calls: number("SUIMON_SOAK_CALLS", 0),
            connections: number("SUIMON_SOAK_CONNECTIONS", 0),
        }
    }
}

mod full {
    #[test]
    fn memory_descriptors_threads_and_files_do_not_grow_under_load() {
        super::soak(&super::Goals::of_environment()).unwrap();
    }
}

fn soak(goals: &Goals) -> Result<()> {
    let mut site = Site::new()?;
    let watched = site.watched();
    let (gate, totals) = (Gate::default(), Tally::default());
    let mut run = Run { site: &site, gate: &gate, tally: &totals, watched, taken: Vec::new() };
    let started = Instant::now();
    control::fill_event_log(&site, &totals, EVENTS_MAX)?;
    println!("the log was full of events after {:.0} s", started.elapsed().as_secs_f64());
    let loads = loads(&site, &totals)?;
    let result = std::thread::scope(|scope| {
        let _end = EndGuard(&gate);
        for (name, load) in loads {
            gate.start(scope, name, &totals, load);
        }
        run.take_checkpoints(goals)
    });
    println!("{}{}", run.report(), totals.describe());
    result?;
    run.check()
}

type Load<'a> = Box<dyn FnMut() -> Result<()> + Send + 'a>;

/// Returns name and iteration function of each load.
fn loads<'a>(site: &'a Site, totals: &'a Tally) -> Result<Vec<(&'static str, Load<'a>)>> {
    let [a, b, c] = site.guests.as_slice() else { anyhow::bail!("there are three guests") };
    let [b0, b1] = Site::BLOCK_DISKS;
    Ok(vec![
        ("tap", Box::new(network::tcp(&a.namespace, &b.namespace, &b.address())?)),
        ("uplink", Box::new(network::tcp(&c.namespace, &site.world, Site::WORLD)?)),
        ("front-ends", Box::new(network::front_ends(site, totals))),
        ("testpmd", Box::new(network::testpmd(site)?)),
        (b0, Box::new(disks::vhost_user(site, totals, b0))),
        (b1, Box::new(disks::vhost_user(site, totals, b1))),
        ("nbd-requests", Box::new(disks::nbd_requests(site, totals))),
        ("nbd-connections", Box::new(disks::nbd_connections(site, totals))),
        ("nbd-tls", Box::new(disks::nbd_tls(site, totals))),
        ("disks", Box::new(disks::connect_and_disconnect(site, totals))),
        ("reads", Box::new(control::reads(site, totals))),
        ("scrapes", Box::new(control::scrapes(site, totals))),
        ("streams", Box::new(control::streams(site, totals))),
        ("changes", Box::new(control::changes(site, totals))),
        ("vms", Box::new(control::vms(site, totals))),
    ])
}

/// Running loads and the checkpoints so far.
struct Run<'a> {
    site: &'a Site,
    gate: &'a Gate,
    tally: &'a Tally,
    watched: Watched,
    taken: Vec<Taken>,
}

/// A checkpoint and the work done until then.
struct Taken {
    checkpoint: Checkpoint,
    requests: u64,
    calls: u64,
    connections: u64,
    frames: u64,
    events: u64,
    event_bytes: usize,
}

impl Run<'_> {
    fn take_checkpoints(&mut self, goals: &Goals) -> Result<()> {
        let started = Instant::now();
        println!("{}", Self::HEADINGS);
        loop {
            self.gate.run(PERIOD)?;
            self.gate.close()?;
            let time = started.elapsed();
            let first = self.baseline();
            let checkpoint = match first {
                Some(first) => self.watched.next(time, &first.checkpoint)?,
                None => self.watched.first(time)?,
            };
            let mut api = Client::connect(&self.site.socket(), self.tally)?;
            self.taken.push(Taken {
                checkpoint,
                requests: disks::requests(&mut api)?,
                frames: control::frames(&mut api)?,
                events: control::last_event(&mut api)?,
                event_bytes: control::event_bytes(&mut api)?,
                calls: self.tally.calls.load(Ordering::Relaxed),
                connections: self.tally.connections.load(Ordering::Relaxed),
            });
            drop(api);
            let last = &self.taken[self.taken.len() - 1];
            println!("{}", last.line());
            if let [.., before, _] = self.taken.as_slice() {
                let (before, now) = (&before.checkpoint, &last.checkpoint);
                let (held, memory) = (
                    before.held.difference(&now.held),
                    before.anonymous.difference(&now.anonymous),
                );
                println!("since the checkpoint before: {held}{memory}");
            }
            let is_completed = last.requests >= goals.requests
                && last.calls >= goals.calls
                && last.connections >= goals.connections;
            if is_completed && time >= goals.time {
                return Ok(());
            }
            self.gate.open();
        }
    }

    /// Returns the checkpoint that later ones are compared with: the first one after the warm-up.
    fn baseline(&self) -> Option<&Taken> {
        let is_warm =
            |sample: &&Taken| sample.checkpoint.time >= WARM_UP && sample.events >= EVENTS_MAX;
        self.taken.iter().find(is_warm)
    }

    const HEADINGS: &'static str = " minute  anonymous    fds threads  files  file KiB  requests \
                            calls       conns    frames  events  events KiB";

    fn report(&self) -> String {
        let mut text = format!("{}\n", Self::HEADINGS);
        for sample in &self.taken {
            let _ = writeln!(text, "{}", sample.line());
        }
        text
    }

    /// Fails if a resource has grown since the baseline checkpoint.
    fn check(&self) -> Result<()> {
        let Some(first) = self.baseline() else {
            anyhow::bail!("there were fewer than {EVENTS_MAX} events");
        };
        let (first, mut differences) = (&first.checkpoint, String::new());
        for sample in self.taken.iter().filter(|sample| sample.checkpoint.time > first.time) {
            let now = &sample.checkpoint;
            let minute = now.time.as_secs_f64() / 60.0;
            if !now.difference.is_empty() {
                let _ = write!(differences, "\nminute {minute:.1}: {}", now.difference);
            }
            if now.files != first.files {
                let changed_files: Vec<_> = now.files.symmetric_difference(&first.files).collect();
                let _ = write!(differences, "\nminute {minute:.1}: files {changed_files:?}");
            }
        }
        let last = self.taken.last().map_or(first, |sample| &sample.checkpoint);
        let growth = last.anonymous.total_kib().saturating_sub(first.anonymous.total_kib());
        if growth >= GROWTH_MAX {
            let by_use = first.anonymous.difference(&last.anonymous);
            let _ = write!(differences, "\nanonymous memory has grown by {growth} KiB: {by_use}");
        }
        ensure!(differences.is_empty(), "{differences}");
        Ok(())
    }
}

impl Taken {
    fn line(&self) -> String {
        format!(
            "{} {:9} {:8} {:7} {:9} {:7} {:11}",
            self.checkpoint.columns(),
            self.requests,
            self.calls,
            self.connections,
            self.frames,
            self.events,
            self.event_bytes >> 10
        )
    }
}
