//! Load: TCP sessions from the guests to the external network.

use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Process, Rig, wait_until};

use super::testbed::{EXTERNAL_ADDRESS, Testbed};

/// Number of sessions per iperf3, which supports at most 128.
const SESSIONS_PER_CLIENT: u32 = 105;
const PORT_FIRST: u16 = 5300;
/// Time limit for all sessions to be established. A client opens them one after the other, and each
/// lost SYN takes 1 s or more.
const SESSIONS_LIMIT: Duration = Duration::from_secs(180);
const CONNECT_MS: &str = "60000";
/// Command that starts the load with a lower priority, so that workers of the switch precede it if
/// CPUs are few.
const NICE: [&str; 3] = ["nice", "-n", "10"];

/// Sessions in progress with their clients.
#[derive(Default)]
pub(crate) struct Load {
    sessions: u32,
    clients: Vec<Client>,
    servers: Vec<Process>,
}

struct Client {
    process: Process,
    sessions: u32,
}

impl Load {
    /// Sets the number of sessions of each guest. If it is the current number, the sessions
    /// continue; otherwise all sessions are ended and new ones are started.
    pub(crate) fn set(
        &mut self,
        rig: &Rig,
        testbed: &Testbed,
        sessions: u32,
        session_bps: Option<u64>,
    ) -> Result<()> {
        if sessions == self.sessions {
            return Ok(());
        }
        self.clients.clear();
        self.servers.clear();
        self.sessions = sessions;
        let mut port = PORT_FIRST;
        let mut planned_clients = Vec::new();
        for guest in &testbed.guests {
            let mut unassigned = sessions;
            while unassigned > 0 {
                let part = unassigned.min(SESSIONS_PER_CLIENT);
                let port_text = port.to_string();
                let command = [&NICE[..], &["iperf3", "--server", "--port", &port_text]].concat();
                self.servers.push(testbed.external_namespace().start(rig, "server", &command)?);
                planned_clients.push((guest, part, port));
                unassigned -= part;
                port += 1;
            }
        }
        wait_until("listening servers", Duration::from_secs(20), || {
            for server in &mut self.servers {
                server.check_running()?;
            }
            let sockets = testbed.external_namespace().run(&["ss", "-Hltn"])?;
            Ok((PORT_FIRST..port).all(|port| sockets.contains(&format!(":{port} "))))
        })?;
        for (guest, part, port) in planned_clients {
            let (port, parallel) = (port.to_string(), part.to_string());
            let mut command = NICE.to_vec();
            command.extend([
                "iperf3",
                "--client",
                EXTERNAL_ADDRESS,
                "--port",
                &port,
                "--time",
                "0",
            ]);
            command.extend(["--parallel", &parallel, "--connect-timeout", CONNECT_MS]);
            let rate = session_bps.map(|rate| rate.to_string());
            if let Some(rate) = &rate {
                command.extend(["--bitrate", rate]);
            }
            let process = guest.namespace.start(rig, "client", &command)?;
            self.clients.push(Client { process, sessions: part });
        }
        // Each client also has a control connection.
        let connections = testbed.guests.len() * sessions as usize + self.clients.len();
        wait_until("established sessions", SESSIONS_LIMIT, || {
            for client in &mut self.clients {
                client.process.check_running()?;
            }
            let filter = format!("( sport >= :{PORT_FIRST} and sport < :{port} )");
            let established = testbed.external_namespace().run(&[
                "ss",
                "-Htn",
                "state",
                "established",
                &filter,
            ])?;
            Ok(established.lines().count() >= connections)
        })
    }

    /// Returns the number of sessions that have ended unexpectedly so far.
    pub(crate) fn lost_sessions(&mut self) -> u32 {
        let clients = self.clients.iter_mut();
        clients.filter_map(|client| (!client.process.is_running()).then_some(client.sessions)).sum()
    }
}
