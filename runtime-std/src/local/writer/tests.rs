use std::fs;
use std::path::Path;

use smol::block_on;

use super::super::scratch::Scratch;
use super::super::state::State;
use super::super::{Fresh, LocalErrorKind, Source, Start};
use super::*;

const PIECE_LEN: usize = 1 << 20;

fn source(size: u64) -> Source {
    Source {
        url: "sftp://h/x".into(),
        size: Some(size),
        mtime: Some(1),
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| u8::try_from((i * 31 + i / 251) % 256).unwrap_or(0))
        .collect()
}

fn open(target: &Path, source: Source, is_resume: bool) -> (Part, Start) {
    Part::open(target, source, is_resume).expect("a part")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Writes the first `len` bytes of `data` and stops.
fn stopped(target: &Path, data: &[u8], len: usize) -> Kept {
    let (part, _) = open(target, source(data.len() as u64), false);
    block_on(async {
        let mut writer = PartWriter::new(part);
        writer
            .write(0, &mut data[..len].to_vec())
            .await
            .expect("written");
        writer.keep(len as u64).await
    })
}

fn state_path(target: &Path) -> PathBuf {
    let name = target
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    target.with_file_name(format!(".{name}.longhaul-part.state"))
}

#[test]
fn fragments_in_any_order_make_the_whole_file() {
    let scratch = Scratch::new("order");
    let target = scratch.path().join("x");
    let data = content(3 * PIECE_LEN + 17);
    let (part, start) = open(&target, source(data.len() as u64), false);
    assert_eq!(start, Start::Fresh(Fresh::Asked));
    block_on(async {
        let mut writer = PartWriter::new(part);
        let mut fragments: Vec<(usize, &[u8])> = data
            .chunks(70_001)
            .enumerate()
            .map(|(i, bytes)| (i * 70_001, bytes))
            .collect();
        fragments.rotate_left(5);
        fragments.swap(1, 9);
        for (offset, bytes) in fragments {
            writer
                .write(offset as u64, &mut bytes.to_vec())
                .await
                .expect("written");
            assert_eq!(names(scratch.path()), [".x.longhaul-part"]);
        }
        writer.finish(data.len() as u64).await.expect("finished");
    });
    assert_eq!(fs::read(&target).expect("a file"), data);
    assert_eq!(names(scratch.path()), ["x"]);
}

#[test]
fn a_whole_file_whose_name_is_refused_is_kept() {
    let scratch = Scratch::new("refused");
    let target = scratch.path().join("x");
    let data = content(1000);
    let (part, _) = open(&target, source(1000), false);
    let kept = block_on(async {
        let mut writer = PartWriter::new(part);
        writer.write(0, &mut data.clone()).await.expect("written");
        fs::create_dir(&target).expect("a directory in the way");
        writer.finish(1000).await.expect_err("it is in the way")
    });
    let kind = kept.error.map(|error| error.kind());
    assert_eq!((kept.bytes, kind), (1000, Some(LocalErrorKind::NotAFile)));
    fs::remove_dir(&target).expect("out of the way");
    let (part, start) = open(&target, source(1000), true);
    let tail = data.clone();
    assert_eq!(start, Start::Resume { mark: 1000, tail });
    block_on(PartWriter::new(part).finish(1000)).expect("finished");
    assert_eq!(fs::read(&target).expect("a file"), data);
}

#[test]
fn a_mark_is_recorded_only_behind_its_bytes() {
    let scratch = Scratch::new("mark");
    let target = scratch.path().join("x");
    let step = usize::try_from(MARK_STEP_BYTES).expect("small");
    let data = content(step + 100);
    let (part, _) = open(&target, source(data.len() as u64), false);
    block_on(async {
        let mut writer = PartWriter::new(part);
        writer
            .write(0, &mut data[..step].to_vec())
            .await
            .expect("written");
        writer.mark(step as u64 - 1).await.expect("ignored");
        writer.mark(step as u64).await.expect("recorded");
        writer
            .write(step as u64, &mut data[step..].to_vec())
            .await
            .expect("written");
        // As if killed here: nothing is closed in good order.
        drop(writer.jobs);
        let (part, result) = writer.worker.await;
        result.expect("no error");
        assert_eq!(part.mark(), step as u64);
    });
    let text = fs::read_to_string(state_path(&target)).expect("a state");
    let state = State::parse(&text).expect("a whole state");
    assert_eq!((state.mark, state.is_synced), (step as u64, false));
    let (part, start) = open(&target, source(data.len() as u64), true);
    if state.boot.is_some() {
        let tail = data[step - (64 << 10)..step].to_vec();
        assert_eq!(
            start,
            Start::Resume {
                mark: step as u64,
                tail
            }
        );
        assert_eq!(part.mark(), step as u64);
    } else {
        assert_eq!(start, Start::Fresh(Fresh::Restarted));
    }
}

#[test]
fn a_stopped_download_goes_on_from_its_mark() {
    let scratch = Scratch::new("resume");
    let target = scratch.path().join("x");
    let data = content(200_000);
    let kept = stopped(&target, &data, 150_000);
    assert_eq!((kept.bytes, kept.error.is_none()), (150_000, true));
    let (part, start) = open(&target, source(200_000), true);
    assert_eq!(
        start,
        Start::Resume {
            mark: 150_000,
            tail: data[150_000 - 65_536..150_000].to_vec()
        }
    );
    block_on(async {
        let mut writer = PartWriter::new(part);
        writer
            .write(150_000, &mut data[150_000..].to_vec())
            .await
            .expect("written");
        writer.finish(200_000).await.expect("finished");
    });
    assert_eq!(fs::read(&target).expect("a file"), data);
    assert_eq!(names(scratch.path()), ["x"]);
}

#[test]
fn a_part_of_something_else_is_not_gone_on_with() {
    let scratch = Scratch::new("changed");
    let target = scratch.path().join("x");
    let data = content(1000);
    let size = 1000;
    let changed = [
        (
            Source {
                url: "sftp://h/y".into(),
                ..source(size)
            },
            Fresh::NoPart,
        ),
        (source(size + 1), Fresh::Changed),
        (
            Source {
                mtime: Some(2),
                ..source(size)
            },
            Fresh::Changed,
        ),
        (
            Source {
                mtime: None,
                ..source(size)
            },
            Fresh::Changed,
        ),
        (
            Source {
                size: None,
                ..source(size)
            },
            Fresh::Changed,
        ),
    ];
    for (other, reason) in changed {
        stopped(&target, &data, 700);
        let (part, start) = open(&target, other, true);
        assert_eq!(start, Start::Fresh(reason));
        assert_eq!(fs::metadata(part.path()).expect("a part").len(), 0);
        assert!(!state_path(&target).exists());
    }
    // Cut behind our back, from an earlier boot, or with a damaged state.
    stopped(&target, &data, 700);
    let part_file = scratch.path().join(".x.longhaul-part");
    fs::write(&part_file, &data[..699]).expect("cut");
    assert_eq!(
        open(&target, source(size), true).1,
        Start::Fresh(Fresh::NoPart)
    );
    for (from, to, reason) in [
        ("synced yes", "synced no", Fresh::Restarted),
        ("end .", "", Fresh::NoPart),
    ] {
        stopped(&target, &data, 700);
        let text = fs::read_to_string(state_path(&target)).expect("a state");
        let text = text.replace(from, to).replace("boot ", "boot x");
        fs::write(state_path(&target), text).expect("changed");
        assert_eq!(open(&target, source(size), true).1, Start::Fresh(reason));
    }
}

#[test]
fn nothing_arrived_leaves_nothing() {
    let scratch = Scratch::new("nothing");
    let target = scratch.path().join("x");
    let kept = stopped(&target, &content(10), 0);
    assert_eq!((kept.bytes, kept.error.is_none()), (0, true));
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn two_cannot_write_the_same_part() {
    let scratch = Scratch::new("busy");
    let target = scratch.path().join("x");
    let _first = open(&target, source(1), false);
    let error = Part::open(&target, source(1), false).expect_err("busy");
    assert_eq!(error.kind(), LocalErrorKind::Busy);
}

#[test]
fn a_missing_directory_is_named() {
    let scratch = Scratch::new("missing");
    let target = scratch.path().join("no/x");
    let error = Part::open(&target, source(1), false).expect_err("no directory");
    assert_eq!(error.kind(), LocalErrorKind::NotFound);
    assert!(
        error
            .to_string()
            .contains("/no: cannot write into it: no such"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_the_download_and_the_mark_stays_true() {
    let scratch = Scratch::new("full");
    let target = scratch.path().join("x");
    // A device that is always full stands in for the part's file.
    let (part, _) = open(&target, source(1 << 30), false);
    let part = part.with_file(
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("a device"),
    );
    let kept = block_on(async {
        let mut writer = PartWriter::new(part);
        let mut offset = 0;
        while writer.write(offset, &mut vec![0; PIECE_LEN]).await.is_ok()
            && writer.mark(offset).await.is_ok()
        {
            offset += PIECE_LEN as u64;
            assert!(offset < 1 << 30, "the error never came");
        }
        writer.keep(offset).await
    });
    let error = kept.error.expect("an error");
    assert_eq!((error.kind(), kept.bytes), (LocalErrorKind::Full, 0));
    assert!(names(scratch.path()).is_empty());
}
