//! What the tests against a real server share: the server's variables, scratch folders, the command, a slow server.

use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// A variable that `scripts/sshd.sh` sets.
pub(crate) fn env(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run scripts/sshd.sh scripts/interop.sh"))
}

pub(crate) fn sftp_server() -> String {
    env("LONGHAUL_SFTP_SERVER")
}

/// Makes `longhaul-test` a known host.
pub(crate) fn ssh_args() -> [String; 2] {
    ["-F".into(), env("LONGHAUL_SSH_CONFIG")]
}

/// The command that was built beside this test.
pub(crate) fn longhaul(verb: &str) -> Command {
    let test = std::env::current_exe().expect("a path");
    let program = test.ancestors().nth(2).expect("a folder").join("longhaul");
    assert!(
        program.exists(),
        "build it first: cargo build -p longhaul --bins"
    );
    let mut command = Command::new(program);
    command.arg(verb);
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn ok(&self) -> bool {
        self.code == Some(0)
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    Ran {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Bytes that are different at each offset and for each seed.
pub(crate) fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bytes.extend(random.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[expect(
    clippy::disallowed_methods,
    reason = "here real processes are waited for"
)]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}: never");
        thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn kill(signal: &str, pid: u32) {
    // A process that is gone already is as good.
    let _ = Command::new("kill")
        .arg(signal)
        .arg(pid.to_string())
        .status();
}

/// The processes below `pid`.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut all = Vec::new();
    for child in list.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        all.push(child);
        all.extend(children(child));
    }
    all
}

/// A folder for one test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("longhaul-interop-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|e| name(e).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A file that [`Self::server_as_nobody`] may not read.
    pub(crate) fn secret(&self, name: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.file(name, b"secret");
        let mode = if is_root() { 0o600 } else { 0 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permitted");
        path
    }

    /// A server without the rights of root, which may read everything.
    pub(crate) fn server_as_nobody(&self) -> Vec<OsString> {
        let mut command = Vec::new();
        if is_root() {
            let drop = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ];
            command.extend(drop.map(OsString::from));
        }
        command.push(sftp_server().into());
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).out == b"0\n"
}

/// SFTP without SSH on a port of its own, at most so many bytes a second.
pub(crate) struct Throttle {
    pub(crate) port: u16,
}

impl Throttle {
    pub(crate) fn start(bytes_per_second: Option<u32>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                thread::spawn(move || serve(stream, bytes_per_second));
            }
        });
        Self { port }
    }

    pub(crate) fn url(&self, path: &Path) -> String {
        format!("sftp://127.0.0.1:{}{}", self.port, path.display())
    }
}

#[expect(clippy::disallowed_methods, reason = "it is slow on purpose")]
fn serve(mut stream: std::net::TcpStream, bytes_per_second: Option<u32>) {
    let input = OwnedFd::from(stream.try_clone().expect("a stream"));
    let mut command = Command::new(sftp_server());
    command.stdin(Stdio::from(input));
    let Some(rate) = bytes_per_second else {
        let mut child = command
            .stdout(Stdio::from(OwnedFd::from(stream)))
            .spawn()
            .expect("a server");
        drop(command);
        let _ = child.wait();
        return;
    };
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a server");
    let mut output = child.stdout.take().expect("a pipe");
    let mut buffer = [0; 64 << 10];
    while let Ok(len @ 1..) = output.read(&mut buffer) {
        if stream.write_all(&buffer[..len]).is_err() {
            break;
        }
        thread::sleep(Duration::from_secs_f64(len as f64 / f64::from(rate)));
    }
    drop(output);
    let _ = child.kill();
    let _ = child.wait();
}
