//! A daemon with every kind of back-end under load of every kind. What it holds does not grow.
//!
//! `SUIMON_SOAK_MINUTES` is how long, at least. It goes on until as many requests, API calls and
//! connections are done as `SUIMON_SOAK_REQUESTS`, `SUIMON_SOAK_CALLS` and
//! `SUIMON_SOAK_CONNECTIONS` say.

#[path = "../../../../../sys/vhost-user/tests/integration/bench/mod.rs"]
mod bench;
mod checkpoint;
mod client;
mod control;
mod disks;
mod gate;
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

/// Time from checkpoint to checkpoint.
const PERIOD: Duration = Duration::from_secs(60);
/// Checkpoints are compared with the first one after this.
const WARM_UP: Duration = Duration::from_secs(120);
/// Events that a daemon keeps. Until it has so many, its memory grows by each.
const EVENTS_MAX: u64 = 10_000;
/// Growth of anonymous memory that is allowed, in KiB.
const GROWTH_MAX: u64 = 1024;

/// How long the loads run.
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
    let (gate, tally) = (Gate::default(), Tally::default());
    let mut run = Run { site: &site, gate: &gate, tally: &tally, watched, taken: Vec::new() };
    let began = Instant::now();
    control::fill_event_log(&site, &tally, EVENTS_MAX)?;
    println!("the log was full of events after {:.0} s", began.elapsed().as_secs_f64());
    let loads = loads(&site, &tally)?;
    let result = std::thread::scope(|scope| {
        let _end = EndGuard(&gate);
        for (name, load) in loads {
            gate.start(scope, name, &tally, load);
        }
        run.all(goals)
    });
    println!("{}{}", run.report(), tally.describe());
    result?;
    run.check()
}

type Load<'a> = Box<dyn FnMut() -> Result<()> + Send + 'a>;

/// Returns the name and one iteration of each load.
fn loads<'a>(site: &'a Site, tally: &'a Tally) -> Result<Vec<(&'static str, Load<'a>)>> {
    let [a, b, c] = site.guests.as_slice() else { anyhow::bail!("there are three guests") };
    let [b0, b1] = Site::BLOCK_DISKS;
    Ok(vec![
        ("tap", Box::new(network::tcp(&a.namespace, &b.namespace, &b.address())?)),
        ("uplink", Box::new(network::tcp(&c.namespace, &site.world, Site::WORLD)?)),
        ("front-ends", Box::new(network::front_ends(site, tally))),
        ("testpmd", Box::new(network::testpmd(site)?)),
        (b0, Box::new(disks::vhost_user(site, tally, b0))),
        (b1, Box::new(disks::vhost_user(site, tally, b1))),
        ("nbd-requests", Box::new(disks::nbd_requests(site, tally))),
        ("nbd-connections", Box::new(disks::nbd_connections(site, tally))),
        ("nbd-tls", Box::new(disks::nbd_tls(site, tally))),
        ("disks", Box::new(disks::come_and_go(site, tally))),
        ("reads", Box::new(control::reads(site, tally))),
        ("scrapes", Box::new(control::scrapes(site, tally))),
        ("streams", Box::new(control::streams(site, tally))),
        ("changes", Box::new(control::changes(site, tally))),
        ("vms", Box::new(control::vms(site, tally))),
    ])
}

/// Loads under way and the checkpoints so far.
struct Run<'a> {
    site: &'a Site,
    gate: &'a Gate,
    tally: &'a Tally,
    watched: Watched,
    taken: Vec<Taken>,
}

/// A checkpoint and what had been done until then.
struct Taken {
    checkpoint: Checkpoint,
    requests: u64,
    calls: u64,
    connections: u64,
    frames: u64,
    events: u64,
}

impl Run<'_> {
    fn all(&mut self, goals: &Goals) -> Result<()> {
        let began = Instant::now();
        println!("{}", Self::HEADINGS);
        loop {
            self.gate.run(PERIOD)?;
            self.gate.close()?;
            let time = began.elapsed();
            let first = self.first();
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
                calls: self.tally.calls.load(Ordering::Relaxed),
                connections: self.tally.connections.load(Ordering::Relaxed),
            });
            drop(api);
            let last = &self.taken[self.taken.len() - 1];
            println!("{}", last.line());
            if let [.., before, _] = self.taken.as_slice() {
                let difference = before.checkpoint.held.difference(&last.checkpoint.held);
                println!("since the checkpoint before: {difference}");
            }
            let is_done = last.requests >= goals.requests
                && last.calls >= goals.calls
                && last.connections >= goals.connections;
            if is_done && time >= goals.time {
                return Ok(());
            }
            self.gate.open();
        }
    }

    /// The checkpoint that later ones are compared with.
    fn first(&self) -> Option<&Taken> {
        let is_warm =
            |taken: &&Taken| taken.checkpoint.time >= WARM_UP && taken.events >= EVENTS_MAX;
        self.taken.iter().find(is_warm)
    }

    const HEADINGS: &'static str = " minute  anonymous    fds threads  files  file KiB  requests \
                            calls       conns    frames  events";

    fn report(&self) -> String {
        let mut text = format!("{}\n", Self::HEADINGS);
        for taken in &self.taken {
            let _ = writeln!(text, "{}", taken.line());
        }
        text
    }

    /// Fails if something has grown since the first checkpoint behind the warm-up.
    fn check(&self) -> Result<()> {
        let Some(first) = self.first() else {
            anyhow::bail!("there were fewer than {EVENTS_MAX} events");
        };
        let (first, mut wrong) = (&first.checkpoint, String::new());
        for taken in self.taken.iter().filter(|taken| taken.checkpoint.time > first.time) {
            let now = &taken.checkpoint;
            let minute = now.time.as_secs_f64() / 60.0;
            if !now.difference.is_empty() {
                let _ = write!(wrong, "\nminute {minute:.1}: {}", now.difference);
            }
            if now.files != first.files {
                let all: Vec<_> = now.files.symmetric_difference(&first.files).collect();
                let _ = write!(wrong, "\nminute {minute:.1}: files {all:?}");
            }
        }
        let last = self.taken.last().map_or(first, |taken| &taken.checkpoint);
        let growth = last.anonymous_kib.saturating_sub(first.anonymous_kib);
        if growth >= GROWTH_MAX {
            let _ = write!(wrong, "\nanonymous memory has grown by {growth} KiB");
        }
        ensure!(wrong.is_empty(), "{wrong}");
        Ok(())
    }
}

impl Taken {
    fn line(&self) -> String {
        format!(
            "{} {:9} {:8} {:7} {:9} {:7}",
            self.checkpoint.columns(),
            self.requests,
            self.calls,
            self.connections,
            self.frames,
            self.events
        )
    }
}
