//! Load that starts and stops, and the reaction of dynamic VMQ.
//!
//! The daemon's counters show when the load started and stopped, the daemon's events when a queue
//! moved. The delays of the test's own polling only increase the results: each is an upper bound.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::light_guest::NamespaceGuest;
use crate::namespace::{Namespace, Veth};
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{wait_for_value, wait_until};

/// Address behind the uplink.
const WORLD: &str = "10.77.0.200";
const GUESTS: u8 = 4;
const PORT_FIRST: u16 = 5300;
/// Interval at which the counters are read.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Number of frames per interval above which the load must have started.
const LOAD_FRAMES: u64 = 100;
/// Time below that number of frames after which the load has ended.
const QUIET: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_secs(120);
/// Id of the event `operator_move_event`.
const QUEUE_MOVED: u64 = 5001;

/// Milliseconds since 1970, as in events.
pub type UnixMs = u64;

/// Queue that VMQ has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMove {
    /// Time at which the queue moved.
    pub at: UnixMs,
    /// Id of the queue, like `vm0/rx/0`.
    pub queue: String,
    /// Previous and new worker.
    pub workers: [String; 2],
    /// Reason that VMQ reports.
    pub because: String,
}

/// Switch with the uplink `up` and namespace guests that can load it. Fields are dropped from the
/// top.
#[derive(Debug)]
pub struct LoadedHost {
    daemon: Daemon,
    guests: Vec<NamespaceGuest>,
    servers: Vec<Process>,
    world: Namespace,
    _wire: Veth,
}

/// Running load; dropping it ends it.
#[derive(Debug)]
pub struct Load {
    clients: Vec<Process>,
    /// Earliest time at which it can have started.
    pub began: UnixMs,
}

/// Counters of the daemon at a point in time.
struct Look {
    queried_at: UnixMs,
    frames: u64,
}

impl LoadedHost {
    /// Starts the setup with `workers` floating workers.
    ///
    /// # Errors
    /// A component did not start.
    pub fn new(rig: &Rig, processors: u16) -> Result<Self> {
        let world = Namespace::new(rig, "world")?;
        let (near, far) = (rig.device("n"), rig.device("f"));
        let wire = Veth::new(&near, &far, &world)?;
        world.address(&far, &format!("{WORLD}/24"))?;
        let guests: Vec<NamespaceGuest> = (0..GUESTS)
            .map(|nth| NamespaceGuest::new(rig, &format!("vm{nth}"), 10 + nth))
            .collect::<Result<_>>()?;
        let mut host = format!(
            "[host]\nfloating_workers = {processors}\n\
             [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{near}\"\n"
        );
        for guest in &guests {
            host += &guest.nic_toml("wan", "");
        }
        let daemon = Daemon::start(rig, &host)?;
        let mut servers = Vec::new();
        for (port, guest) in (PORT_FIRST..).zip(&guests) {
            guest.bring_up()?;
            let arguments = ["iperf3", "--server", "--port", &port.to_string()];
            servers.push(world.start(rig, "server", &arguments)?);
        }
        let load_step = Self { daemon, guests, servers, world, _wire: wire };
        load_step.wait_ready()?;
        Ok(load_step)
    }

    /// Waits until guests reach the servers, and the queues are placed as without load.
    fn wait_ready(&self) -> Result<()> {
        wait_until("guests that reach the servers", LIMIT, || {
            let mut reach = self.guests.iter().map(|guest| guest.namespace.ping(WORLD));
            Ok(reach.all(|reaches| reaches.unwrap_or(false)))
        })?;
        wait_until("listening servers", LIMIT, || {
            let sockets = self.world.run(&["ss", "-Hltn"])?;
            let mut ports = (PORT_FIRST..).take(self.servers.len());
            Ok(ports.all(|port| sockets.contains(&format!(":{port} "))))
        })?;
        self.wait_packed()
    }

    /// Returns the daemon.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Returns the number of workers that have queues.
    ///
    /// # Errors
    /// The daemon does not respond.
    pub fn workers_in_use(&self) -> Result<usize> {
        let vmq = self.daemon.get("/1.0/vmq/up")?;
        let workers = vmq["workers"].as_array().context("no processors")?;
        Ok(workers.iter().filter(|worker| worker["queues"] != 0).count())
    }

    /// Waits until all queues are on one worker.
    ///
    /// # Errors
    /// The queues are not on one worker in time.
    pub fn wait_packed(&self) -> Result<()> {
        wait_until("queues on one worker", LIMIT, || Ok(self.workers_in_use()? == 1))
    }

    /// Loads the switch with UDP at this rate from each guest, or with more than a worker can
    /// forward if `None`. Returns when the counters show the load.
    ///
    /// # Errors
    /// The counters do not show the load in time.
    pub fn load(&self, rig: &Rig, bits_per_second: Option<u64>) -> Result<Load> {
        let mut last = self.take_sample()?;
        let mut clients = Vec::new();
        let rate = bits_per_second.unwrap_or(0).to_string();
        for (port, guest) in (PORT_FIRST..).zip(&self.guests) {
            let port = port.to_string();
            let arguments = ["iperf3", "--client", WORLD, "--port", &port, "--time", "0"];
            let sends = ["--udp", "--bitrate", &rate, "--length", "200"];
            let arguments = [&arguments[..], &sends].concat();
            clients.push(guest.namespace.start(rig, "client", &arguments)?);
        }
        let deadline = last.queried_at + LIMIT.as_millis() as u64;
        while last.queried_at < deadline {
            let sample = self.take_sample()?;
            if sample.frames >= last.frames + LOAD_FRAMES {
                return Ok(Load { clients, began: last.queried_at });
            }
            last = sample;
            thread::sleep(LOOK_EVERY);
        }
        let mut last_words = clients.iter().map(Process::last_words);
        bail!("no load within {LIMIT:?}: {}", last_words.next().unwrap_or_default())
    }

    /// Ends a load, and returns the earliest time at which it can have ended.
    ///
    /// # Errors
    /// The counters still show it after two minutes.
    pub fn end(&self, mut load: Load) -> Result<UnixMs> {
        for client in &mut load.clients {
            client.check_running()?;
        }
        let mut last = self.take_sample()?;
        for client in &mut load.clients {
            client.signal(Signal::TERM);
        }
        let deadline = last.queried_at + LIMIT.as_millis() as u64;
        let mut loaded = last.queried_at;
        while last.queried_at < deadline {
            thread::sleep(LOOK_EVERY);
            let sample = self.take_sample()?;
            if sample.frames >= last.frames + LOAD_FRAMES {
                loaded = last.queried_at;
            } else if sample.queried_at >= loaded + QUIET.as_millis() as u64 {
                return Ok(loaded);
            }
            last = sample;
        }
        bail!("the load has not ended")
    }

    /// Returns the moves by VMQ since a time.
    ///
    /// # Errors
    /// The daemon does not respond.
    pub fn moves_since(&self, since: UnixMs) -> Result<Vec<QueueMove>> {
        let events = self.daemon.get("/1.0/events?limit=1000")?;
        let events = events.as_array().context("no list of events")?;
        let of_vmq =
            |event: &&Value| event["id"] == QUEUE_MOVED && event["fields"]["reason"] == "vmq";
        let text_of = |event: &Value, field: &str| {
            event["fields"][field].as_str().unwrap_or_default().to_owned()
        };
        let moves = events.iter().filter(of_vmq).map(|event| QueueMove {
            at: event["time_unix_ms"].as_u64().unwrap_or_default(),
            queue: text_of(event, "queue"),
            workers: ["from", "to"].map(|field| text_of(event, field)),
            because: text_of(event, "because"),
        });
        Ok(moves.filter(|queue_move| queue_move.at >= since).collect())
    }

    /// Waits for the first move after a load started, from the only worker in use. Returns an upper
    /// bound of the reaction time.
    ///
    /// # Errors
    /// There is none in time.
    pub fn spread(&self, load: &Load) -> Result<Duration> {
        let mut first = None;
        wait_until("a queue that is moved", LIMIT, || {
            first = self.moves_since(load.began)?.first().map(|queue_move| queue_move.at);
            Ok(first.is_some())
        })?;
        Ok(Duration::from_millis(first.unwrap_or_default() - load.began))
    }

    /// Waits until all queues are on one worker after a load ended. Returns an upper bound of the
    /// time until the last move.
    ///
    /// # Errors
    /// The queues are not on one worker in time, or were on one worker under load.
    pub fn pack(&self, ended_at: UnixMs) -> Result<Duration> {
        self.wait_packed()?;
        // A queue is moved before its event is reported.
        let last = wait_for_value("an event of a queue that is packed", LIMIT, || {
            Ok(self.moves_since(ended_at)?.pop())
        })?;
        Ok(Duration::from_millis(last.at - ended_at))
    }

    fn take_sample(&self) -> Result<Look> {
        let queried_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let nics = self.daemon.get("/1.0/nics")?;
        let frames = |nic: &Value| nic["counters"]["rx_frames"].as_u64();
        let nics = nics.as_array().context("no list of NICs")?;
        let frames = nics.iter().map(frames).sum::<Option<u64>>().context("no counters")?;
        Ok(Look { queried_at, frames })
    }
}
