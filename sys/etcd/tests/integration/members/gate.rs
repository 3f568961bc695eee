//! TCP proxy to an etcd member. Tests close and reopen it to interrupt connections.

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// Connections through the proxy; `None` while it is closed.
type Connections = Mutex<Option<Vec<TcpStream>>>;

pub(crate) struct Gate {
    address: SocketAddr,
    connections: Arc<Connections>,
}

impl Gate {
    /// Creates an open proxy to an `http` endpoint. Its thread runs until the test process exits.
    pub(crate) fn to(endpoint: &str) -> Self {
        let target = endpoint.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Some(Vec::new())));
        let gate = Self { address, connections: Arc::clone(&connections) };
        spawn(move || {
            for from in listener.incoming().flatten() {
                let mut connections = connections.lock().unwrap();
                let (Some(open), Ok(to)) = (connections.as_mut(), TcpStream::connect(&target))
                else {
                    continue;
                };
                for (from, to) in [(&from, &to), (&to, &from)] {
                    let [mut from, mut to] = [from, to].map(|stream| stream.try_clone().unwrap());
                    spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                open.extend([from, to]);
            }
        });
        gate
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes all connections, and rejects new ones.
    pub(crate) fn close(&self) {
        for stream in self.connections.lock().unwrap().take().into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn open(&self) {
        *self.connections.lock().unwrap() = Some(Vec::new());
    }
}
