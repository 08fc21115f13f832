//! Plain TCP: SFTP without SSH, for tunnels that already protect the bytes, and for tests.

use core::time::Duration;
use std::io;

use smol::Timer;
use smol::future::FutureExt as _;
use smol::net::{TcpStream, resolve};

use super::{ConnectError, Connection};

/// How long one address may take to answer. Three retransmissions of SYN (1 + 2 + 4 s) fit with room to spare.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(15);

/// A plain TCP connection: SFTP without SSH. Nothing is encrypted and nobody is authenticated.
#[derive(Clone, Debug)]
#[must_use]
pub struct Tcp {
    host: String,
    port: u16,
}

impl Tcp {
    /// Names the host (IPv6 addresses without brackets) and the port; there is no usual one.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// Connects to the first address of the host that answers.
    ///
    /// # Errors
    ///
    /// If the host has no address, or none answers within 15 s.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let addresses = resolve((self.host.as_str(), self.port))
            .await
            .map_err(|error| ConnectError::resolve(&self.host, &error))?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            let limit = async {
                Timer::after(ADDRESS_TIMEOUT).await;
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"))
            };
            match TcpStream::connect(address).or(limit).await {
                Ok(stream) => {
                    // Requests are small and go out in one write: none may wait for an acknowledgement.
                    stream
                        .set_nodelay(true)
                        .map_err(|error| self.failed(&error))?;
                    return Ok(Connection::new(stream.clone(), stream));
                }
                Err(error) => last = error,
            }
        }
        Err(self.failed(&last))
    }

    fn failed(&self, error: &io::Error) -> ConnectError {
        ConnectError::tcp(&self.host, self.port, error)
    }
}
