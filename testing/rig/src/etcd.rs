//! An etcd of three members, as a cluster's store: on loopback, or in a network namespace that
//! nodes reach by a wire each.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::run;
use crate::namespace::{Namespace, Veth};
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
    /// Where this process reaches them.
    address: String,
}

/// A namespace for etcd, in which each node has an address of its own to reach it by.
#[derive(Debug)]
pub struct EtcdNetwork {
    wires: Vec<Veth>,
    namespace: Namespace,
}

/// Wires are numbered; the last one is for whoever looks after etcd, and never cut.
fn end(wire: usize, host: u8) -> String {
    format!("10.76.{wire}.{host}")
}

impl EtcdNetwork {
    /// A network for so many nodes.
    ///
    /// # Errors
    /// The host refuses namespaces or devices.
    pub fn new(rig: &Rig, nodes: usize) -> Result<Self> {
        let namespace = Namespace::new(rig, "etcd")?;
        let wires = (0..=nodes).map(|wire| {
            let (near, far) = (rig.device(&format!("e{wire}")), format!("n{wire}"));
            let veth = Veth::new(&near, &far, &namespace)?;
            run(&["ip", "address", "add", &format!("{}/24", end(wire, 1)), "dev", &near])?;
            namespace.address(&far, &format!("{}/24", end(wire, 2)))?;
            Ok(veth)
        });
        let wires = wires.collect::<Result<_>>()?;
        Ok(Self { wires, namespace })
    }

    /// What etcd answers to a node is lost, without a word, until it is [mended](Self::mend).
    ///
    /// # Errors
    /// The host refuses.
    pub fn cut(&self, node: usize) -> Result<()> {
        self.namespace.run(&["ip", "route", "add", "blackhole", &end(node, 1)]).map(|_| ())
    }

    /// A node that was cut off reaches etcd again.
    ///
    /// # Errors
    /// It was not cut off.
    pub fn mend(&self, node: usize) -> Result<()> {
        self.namespace.run(&["ip", "route", "del", "blackhole", &end(node, 1)]).map(|_| ())
    }
}

impl Etcd {
    /// Starts them and waits until one leads.
    ///
    /// # Errors
    /// etcd is not installed, or its members do not find each other.
    pub fn start(rig: &Rig) -> Result<Self> {
        Self::start_at(rig, "127.0.0.1", None)
    }

    /// The same in a network.
    ///
    /// # Errors
    /// etcd is not installed, or its members do not find each other.
    pub fn start_in(rig: &Rig, network: &EtcdNetwork) -> Result<Self> {
        let own = network.wires.len() - 1;
        Self::start_at(rig, &end(own, 2), Some(&network.namespace))
    }

    fn start_at(rig: &Rig, address: &str, namespace: Option<&Namespace>) -> Result<Self> {
        let ports = |_| TcpListener::bind("127.0.0.1:0")?.local_addr().map(|of| of.port());
        let clients = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let peers = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let everywhere = |port: u16| match namespace {
            Some(_) => format!("http://0.0.0.0:{port}"),
            None => url(port),
        };
        let all: Vec<String> =
            peers.iter().enumerate().map(|(at, port)| format!("m{at}={}", url(*port))).collect();
        let mut members = Vec::new();
        for (at, (client, peer)) in clients.iter().zip(&peers).enumerate() {
            let words = [
                "etcd".to_owned(),
                format!("--name=m{at}"),
                format!("--data-dir={}", rig.path(&format!("etcd{at}"))),
                format!("--listen-client-urls={}", everywhere(*client)),
                format!("--advertise-client-urls={}", url(*client)),
                format!("--listen-peer-urls={}", url(*peer)),
                format!("--initial-advertise-peer-urls={}", url(*peer)),
                format!("--initial-cluster={}", all.join(",")),
                "--initial-cluster-state=new".to_owned(),
                "--log-level=error".to_owned(),
            ];
            let member = match namespace {
                Some(namespace) => {
                    namespace.start(rig, "etcd", &words.each_ref().map(String::as_str))
                }
                None => Process::start(rig, "etcd", &words),
            };
            members.push(Some(member?));
        }
        let etcd = Self { members, ports: clients, address: address.to_owned() };
        until_some("a leader of etcd", PATIENCE, || Ok(etcd.leader()))?;
        Ok(etcd)
    }

    /// URLs of its members, as a host file has them.
    #[must_use]
    pub fn endpoints(&self) -> String {
        self.endpoints_at(&self.address)
    }

    /// The same for a node of its network.
    #[must_use]
    pub fn endpoints_of(&self, node: usize) -> String {
        self.endpoints_at(&end(node, 2))
    }

    fn endpoints_at(&self, address: &str) -> String {
        let urls: Vec<_> =
            self.ports.iter().map(|port| format!("\"http://{address}:{port}\"")).collect();
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
        let mut stream = TcpStream::connect((self.address.as_str(), *port))?;
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
