//! An etcd of three members on loopback, as a cluster's store.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Process;
use crate::rig::Rig;
use crate::wait::until_some;

const MEMBERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// Its members; dropping it ends them.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Option<Process>>,
    ports: Vec<u16>,
}

impl Etcd {
    /// Starts them and waits until one leads.
    ///
    /// # Errors
    /// etcd is not installed, or its members do not find each other.
    pub fn start(rig: &Rig) -> Result<Self> {
        let ports = |_| TcpListener::bind("127.0.0.1:0")?.local_addr().map(|of| of.port());
        let clients = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let peers = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let all: Vec<String> =
            peers.iter().enumerate().map(|(at, port)| format!("m{at}={}", url(*port))).collect();
        let mut members = Vec::new();
        for (at, (client, peer)) in clients.iter().zip(&peers).enumerate() {
            let words = [
                "etcd".to_owned(),
                format!("--name=m{at}"),
                format!("--data-dir={}", rig.path(&format!("etcd{at}"))),
                format!("--listen-client-urls={}", url(*client)),
                format!("--advertise-client-urls={}", url(*client)),
                format!("--listen-peer-urls={}", url(*peer)),
                format!("--initial-advertise-peer-urls={}", url(*peer)),
                format!("--initial-cluster={}", all.join(",")),
                "--initial-cluster-state=new".to_owned(),
                "--log-level=error".to_owned(),
            ];
            members.push(Some(Process::start(rig, "etcd", &words)?));
        }
        let etcd = Self { members, ports: clients };
        until_some("a leader of etcd", PATIENCE, || Ok(etcd.leader()))?;
        Ok(etcd)
    }

    /// URLs of its members, as a host file has them.
    #[must_use]
    pub fn endpoints(&self) -> String {
        let urls: Vec<_> =
            self.ports.iter().map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
        format!("[{}]", urls.join(", "))
    }

    /// The member that leads, if one does.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let running = self.members.iter().enumerate().filter(|(_, member)| member.is_some());
        let mut leads = running.filter(|(at, _)| self.leads(*at).unwrap_or(false));
        leads.next().map(|(at, _)| at)
    }

    fn leads(&self, at: usize) -> Result<bool> {
        let port = self.ports.get(at).context("there is no such member")?;
        let mut stream = TcpStream::connect(("127.0.0.1", *port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let head = "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(head.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let body = text.find("\r\n\r\n").map_or("", |end| text.get(end..).unwrap_or_default());
        let status: Value = serde_json::from_str(body.trim()).context("etcd's status")?;
        Ok(status["leader"].is_string() && status["leader"] == status["header"]["member_id"])
    }

    /// Kills a member.
    ///
    /// # Errors
    /// It is not there.
    pub fn kill(&mut self, at: usize) -> Result<()> {
        let member = self.members.get_mut(at).and_then(Option::take);
        member.context("it does not run")?.kill();
        Ok(())
    }
}
