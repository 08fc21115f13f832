//! The `longhaul` command and library against a real OpenSSH server.
//!
//! Aim: what users do, and what goes wrong for them, with nothing simulated. Method: `scripts/sshd.sh` starts a server and
//! says where in `LONGHAUL_*` variables; the command is the one built beside this test. Run it all with `./ci.sh interop`.

#[path = "interop/support.rs"]
mod support;

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use longhaul::client::{Client, Config};
use longhaul::transport::Command as Transport;
use smol::io::AsyncReadExt as _;

use support::{
    Scratch, Throttle, children, content, env, longhaul, run, sftp_server, ssh_args, until,
};

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn files_of_all_sizes_come_whole_by_every_transport() {
    let scratch = Scratch::new("sizes");
    let tcp = Throttle::start(None);
    for size in [0, 1, 32_767, 32_768, 261_120, 261_121, 20_000_000] {
        let data = content(size, 1);
        let remote = scratch.file("remote", &data);
        let local = scratch.path("local");
        let url = format!("sftp://longhaul-test{}", remote.display());
        let by_ssh = run(longhaul("get").args(ssh_args()).arg(&url).arg(&local));
        assert!(by_ssh.ok(), "{by_ssh:?}");
        assert!(fs::read(&local).unwrap() == data, "{size} bytes by ssh");
        let url = format!("sftp://127.0.0.1:{}{}", tcp.port, remote.display());
        let by_tcp = run(longhaul("get")
            .args(["--transport", "tcp", &url])
            .arg(&local));
        assert!(by_tcp.ok(), "{by_tcp:?}");
        assert!(fs::read(&local).unwrap() == data, "{size} bytes by TCP");
        let by_command = run(longhaul("get")
            .arg(&remote)
            .arg(&local)
            .arg("--")
            .arg(sftp_server()));
        assert!(by_command.ok(), "{by_command:?}");
        assert!(
            fs::read(&local).unwrap() == data,
            "{size} bytes by a command"
        );
        let cat = run(longhaul("cat")
            .args(ssh_args())
            .arg(format!("longhaul-test:{}", remote.display())));
        assert!(cat.ok() && cat.out == data, "{size} bytes by cat");
    }
    assert_eq!(scratch.names(), ["local", "remote"]);
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn several_urls_go_on_after_a_missing_one() {
    let scratch = Scratch::new("several");
    let first = scratch.file("first", &content(100_000, 1));
    let last = scratch.file("last", &content(50_000, 2));
    fs::create_dir(scratch.path("to")).unwrap();
    let url = |path: &std::path::Path| format!("longhaul-test:{}", path.display());
    let got = run(longhaul("get")
        .args(ssh_args())
        .args([url(&first), url(&scratch.path("none")), url(&last)])
        .arg(scratch.path("to")));
    assert_eq!(got.code, Some(1), "{got:?}");
    assert!(got.err.contains("none: no such file"), "{got:?}");
    for (path, name) in [(first, "to/first"), (last, "to/last")] {
        assert!(fs::read(path).unwrap() == fs::read(scratch.path(name)).unwrap());
    }
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn files_made_up_on_the_spot_are_read_to_their_end() {
    let scratch = Scratch::new("proc");
    let local = scratch.path("local");
    let got = run(longhaul("get")
        .args(ssh_args())
        .arg("longhaul-test:/proc/cpuinfo")
        .arg(&local));
    assert!(got.ok(), "{got:?}");
    // Frequencies change from one read to the next; the number of lines does not.
    let lines = |text: &[u8]| text.split(|&byte| byte == b'\n').count();
    let (found, expected) = (
        fs::read(&local).unwrap(),
        fs::read("/proc/cpuinfo").unwrap(),
    );
    assert!(lines(&found) == lines(&expected) && lines(&found) > 1);
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn a_file_that_grows_is_read_to_its_end() {
    let scratch = Scratch::new("grows");
    let remote = scratch.file("remote", &content(8 << 20, 1));
    let server = Throttle::start(Some(16 << 20));
    let (local, url) = (scratch.path("local"), server.url(&remote));
    let mut get = longhaul("get")
        .args(["--transport", "tcp", &url])
        .arg(&local)
        .spawn()
        .unwrap();
    let part = scratch.path(".local.longhaul-part");
    let mut file = OpenOptions::new().append(true).open(&remote).unwrap();
    until("the part grows", || {
        fs::metadata(&part).is_ok_and(|found| found.len() > 0)
    });
    for seed in 2..6 {
        file.write_all(&content(1 << 20, seed)).unwrap();
    }
    assert!(get.wait().unwrap().success());
    let (found, expected) = (fs::read(&local).unwrap(), fs::read(&remote).unwrap());
    assert!(
        found == expected,
        "{} of {} bytes",
        found.len(),
        expected.len()
    );
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn what_the_server_declines_is_told_in_one_line() {
    let scratch = Scratch::new("declined");
    let secret = scratch.secret("secret");
    let table = [
        (scratch.path("none"), "no such file; check the path"),
        (scratch.path("."), "is a directory; "),
        (secret, "permission denied; "),
    ];
    for (remote, message) in table {
        for verb in ["get", "cat"] {
            let mut command = longhaul(verb);
            command.arg(&remote);
            if verb == "get" {
                command.arg(scratch.path("local"));
            }
            let got = run(command.arg("--").args(scratch.server_as_nobody()));
            assert_eq!(got.code, Some(1), "{got:?}");
            assert_eq!(got.err.lines().count(), 1, "{got:?}");
            let name = remote.display().to_string();
            assert!(
                got.err.contains(&name) && got.err.contains(message),
                "{got:?}"
            );
        }
    }
    assert_eq!(scratch.names(), ["secret"], "nothing is left");
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn a_full_disk_is_told_and_leaves_no_half_file() {
    let scratch = Scratch::new("full");
    let remote = scratch.file("remote", &content(16 << 20, 1));
    let small = scratch.path("small");
    fs::create_dir(&small).unwrap();
    // A file system of 4 MiB that only this command sees.
    let script = "mount -t tmpfs -o size=4m longhaul \"$1\" && shift 1 && \"$@\"; code=$?; ls -A \"$0\"; exit $code";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", script])
        .arg(&small)
        .arg(&small);
    let get = longhaul("get");
    command.arg(get.get_program()).args(get.get_args());
    let got = run(command
        .arg(&remote)
        .arg(small.join("local"))
        .arg("--")
        .arg(sftp_server()));
    assert_eq!(got.code, Some(4), "{got:?}");
    assert!(
        got.err.contains("no space left") && got.err.contains("free some space"),
        "{got:?}"
    );
    assert_eq!(got.err.lines().count(), 1, "{got:?}");
    let names = String::from_utf8_lossy(&got.out).into_owned();
    assert!(!names.lines().any(|name| name == "local"), "{names}");
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn a_killed_server_is_told_and_what_came_is_kept() {
    let scratch = Scratch::new("killed");
    let remote = scratch.path("remote");
    fs::File::create(&remote).unwrap().set_len(1 << 40).unwrap();
    let local = scratch.path("local");
    let get = longhaul("get")
        .args(ssh_args())
        .arg(format!("longhaul-test:{}", remote.display()))
        .arg(&local)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = scratch.path(".local.longhaul-part");
    until("the part grows", || {
        fs::metadata(&part).is_ok_and(|found| found.len() > 0)
    });
    for session in children(env("LONGHAUL_SSHD_PID").parse().unwrap()) {
        support::kill("-KILL", session);
    }
    let output = get.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(
        err.contains("remote: ssh ended") && err.contains("--resume goes on"),
        "{err}"
    );
    assert!(!local.exists() && part.exists());
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn wrong_keys_are_told_apart() {
    let scratch = Scratch::new("keys");
    let key = fs::read_to_string(format!("{}.pub", env("LONGHAUL_SSHD_KEY"))).unwrap();
    let known = format!("[127.0.0.1]:{} {key}", env("LONGHAUL_SSHD_PORT"));
    let known = scratch.file("known_hosts", known.as_bytes());
    let other_host = format!("UserKnownHostsFile={}", known.display());
    let other_key = scratch.path("key");
    let made = run(std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&other_key));
    assert!(made.ok(), "{made:?}");
    let real_hosts = format!("UserKnownHostsFile={}", env("LONGHAUL_KNOWN_HOSTS"));
    let url = format!(
        "sftp://{}@127.0.0.1:{}/etc/hostname",
        env("LONGHAUL_SSHD_USER"),
        env("LONGHAUL_SSHD_PORT")
    );
    for (hosts, key, message) in [
        (
            other_host,
            env("LONGHAUL_SSHD_KEY").into(),
            "the host key of 127.0.0.1 is not the known one",
        ),
        (real_hosts, other_key, "127.0.0.1 did not accept the login"),
    ] {
        let got = run(longhaul("get")
            .args([
                "-F",
                "none",
                "-o",
                "BatchMode=yes",
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                &hosts,
            ])
            .arg("-i")
            .arg(key)
            .arg(&url)
            .arg(scratch.path("local")));
        assert_eq!(got.code, Some(3), "{got:?}");
        assert!(got.err.contains(message), "{got:?}");
        assert_eq!(got.err.lines().count(), 1, "{got:?}");
        assert!(!scratch.path("local").exists());
    }
}

/// Begins a download of `remote` and sends it a signal halfway.
fn interrupted(
    scratch: &Scratch,
    server: &Throttle,
    remote: &std::path::Path,
    signal: &str,
) -> Option<i32> {
    let local = scratch.path("local");
    let mut get = longhaul("get")
        .args(["--transport", "tcp", &server.url(remote)])
        .arg(&local)
        .spawn()
        .expect("it starts");
    let part = scratch.path(".local.longhaul-part");
    until("half has come", || {
        fs::metadata(&part).is_ok_and(|found| found.len() > 18 << 20)
    });
    support::kill(signal, get.id());
    let status = get.wait().expect("it ends");
    assert!(!local.exists() && part.exists());
    status.code()
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn an_interrupted_or_killed_download_is_resumed() {
    for (signal, code) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        let scratch = Scratch::new("resume");
        let data = content(40 << 20, 1);
        let remote = scratch.file("remote", &data);
        let server = Throttle::start(Some(40 << 20));
        assert_eq!(interrupted(&scratch, &server, &remote, signal), code);
        let resume = run(longhaul("get")
            .args(["--resume", "--transport", "tcp", &server.url(&remote)])
            .arg(scratch.path("local")));
        assert!(resume.ok(), "{resume:?}");
        assert!(resume.err.contains("goes on after"), "{signal}: {resume:?}");
        assert!(fs::read(scratch.path("local")).unwrap() == data, "{signal}");
        assert_eq!(scratch.names(), ["local", "remote"]);
    }
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn a_source_that_changed_is_not_resumed() {
    let scratch = Scratch::new("changed");
    let server = Throttle::start(Some(40 << 20));
    for is_same_time in [false, true] {
        let remote = scratch.file("remote", &content(40 << 20, 1));
        let modified = fs::metadata(&remote).unwrap().modified().unwrap();
        assert_eq!(interrupted(&scratch, &server, &remote, "-INT"), Some(130));
        let data = content(40 << 20, 2);
        scratch.file("remote", &data);
        let later = modified + core::time::Duration::from_secs(10);
        let time = if is_same_time { modified } else { later };
        OpenOptions::new()
            .write(true)
            .open(&remote)
            .unwrap()
            .set_modified(time)
            .unwrap();
        let resume = run(longhaul("get")
            .args(["--resume", "--transport", "tcp", &server.url(&remote)])
            .arg(scratch.path("local")));
        assert!(resume.ok(), "{resume:?}");
        assert!(
            resume.err.contains("has changed, so it starts over"),
            "{resume:?}"
        );
        assert!(fs::read(scratch.path("local")).unwrap() == data);
        fs::remove_file(scratch.path("local")).unwrap();
    }
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn a_reader_that_leaves_ends_cat() {
    let scratch = Scratch::new("head");
    let remote = scratch.file("remote", &content(20 << 20, 1));
    let mut cat = longhaul("cat")
        .args(ssh_args())
        .arg(format!("longhaul-test:{}", remote.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut head = [0; 10_000];
    cat.stdout.take().unwrap().read_exact(&mut head).unwrap();
    assert_eq!(head[..], content(20 << 20, 1)[..10_000]);
    assert_eq!(cat.wait().unwrap().code(), Some(141));
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn dropping_a_file_cancels_it_and_closes_its_handle() {
    let scratch = Scratch::new("drop");
    let remote = scratch.file("remote", &content(64 << 20, 1));
    let log = scratch.path("log");
    let script = format!("exec \"$0\" -e -l INFO 2>{}", log.display());
    let connection = Transport::new("sh")
        .with_args(["-c", &script, &sftp_server()])
        .connect();
    smol::block_on(async {
        let client = Client::connect(connection.unwrap(), Config::default());
        let mut file = client
            .read(remote.as_os_str().as_encoded_bytes())
            .await
            .unwrap();
        file.read_exact(&mut [0; 100]).await.unwrap();
        drop(file);
        let closed = || fs::read_to_string(&log).is_ok_and(|log| log.contains("close \""));
        until("the handle is closed", closed);
        // The session goes on, and what is read next is not what was cancelled.
        let mut again = client
            .read(remote.as_os_str().as_encoded_bytes())
            .await
            .unwrap();
        let mut head = [0; 100];
        again.read_exact(&mut head).await.unwrap();
        assert_eq!(head[..], content(100, 1)[..]);
    });
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn text_in_place_of_sftp_is_shown() {
    let scratch = Scratch::new("text");
    let script = "printf 'This system is for\\033[31m ada only\\n'; exec cat >/dev/null";
    let got = run(longhaul("get")
        .arg("/x")
        .arg(scratch.path("local"))
        .args(["--", "sh", "-c", script]));
    assert_eq!(got.code, Some(5), "{got:?}");
    assert!(
        got.err.contains("This system is for\\u{1b}[31m ada only"),
        "{got:?}"
    );
    assert!(scratch.names().is_empty());
}

#[test]
#[ignore = "needs a server: scripts/interop.sh"]
fn several_downloads_share_one_session() {
    let scratch = Scratch::new("shared");
    let remotes: Vec<_> = (0..4)
        .map(|i| scratch.file(&format!("r{i}"), &content(6 << 20, i)))
        .collect();
    let client = Client::connect(
        Transport::new(sftp_server()).connect().unwrap(),
        Config::default(),
    );
    let workers: Vec<_> = remotes
        .into_iter()
        .enumerate()
        .map(|(i, remote)| {
            let (client, local) = (client.clone(), scratch.path(&format!("l{i}")));
            thread::spawn(move || {
                let target = longhaul::Target::from_path(remote.as_os_str().as_encoded_bytes());
                smol::block_on(client.download(&target, &local)).unwrap();
                assert!(fs::read(remote).unwrap() == fs::read(local).unwrap());
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
