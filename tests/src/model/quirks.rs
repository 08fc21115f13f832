//! The knobs of the model server: one for each oddity that users have met.
//!
//! Every default is what OpenSSH's server does. Counts of requests and replies start at 1.

/// The eleven extensions that OpenSSH's server announces, in its order.
pub const OPENSSH_EXTENSIONS: [(&str, &str); 11] = [
    ("posix-rename@openssh.com", "1"),
    ("statvfs@openssh.com", "2"),
    ("fstatvfs@openssh.com", "2"),
    ("hardlink@openssh.com", "1"),
    ("fsync@openssh.com", "1"),
    ("lsetstat@openssh.com", "1"),
    ("limits@openssh.com", "1"),
    ("expand-path@openssh.com", "1"),
    ("copy-data", "1"),
    ("home-directory", "1"),
    ("users-groups-by-id@openssh.com", "1"),
];

/// What OpenSSH's server answers to `limits@openssh.com`: packet, read, write, handles.
pub const OPENSSH_LIMITS: [u64; 4] = [262_144, 261_120, 261_120, 1_019];

/// The most bytes that one DATA reply carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCap {
    /// Always so many.
    Fixed(u32),
    /// Drawn anew for each reply, from the first to the second.
    Random(u32, u32),
}

/// The size in attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeAttr {
    /// Left out.
    Absent,
    /// Another value in each reply: right, one too many, half, and round again.
    Changing,
    /// The size of the file.
    Right,
    /// A number that has nothing to do with the file; 0 as in /proc.
    Wrong(u64),
}

/// How much of a STATUS reply there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusForm {
    /// Code, message and language.
    Full,
    /// The language's length is larger than the packet.
    LyingLanguage,
    /// The message's length is larger than the packet.
    LyingMessage,
    /// Code and message.
    NoLanguage,
    /// The code alone.
    NoMessage,
}

/// When the server deletes a file that was read, as drop boxes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOn {
    /// When a handle to it is closed.
    Close,
    /// When a READ has met its end.
    Eof,
    /// Never.
    Never,
}

/// The handle in a HANDLE reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleForm {
    /// No bytes at all.
    Empty,
    /// So many bytes; above 256 the draft forbids it.
    Len(usize),
}

/// A way to break one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malform {
    /// The string in it claims 4 GiB.
    BodyLengthHuge,
    /// The string in it claims one byte more than there is.
    BodyLengthLong,
    /// The string in it claims one byte less than there is.
    BodyLengthShort,
    /// Random bytes in place of the reply.
    Garbage,
    /// The id of no request.
    IdUnknown,
    /// The packet claims 4 GiB.
    PacketLengthHuge,
    /// The packet claims seven bytes more, so it swallows the head of the next one.
    PacketLengthLong,
    /// The packet claims three bytes: not even an id.
    PacketLengthShort,
    /// The packet claims no bytes.
    PacketLengthZero,
    /// One random bit of the length, the type or the first field is flipped: in the id, a handle or the
    /// payload nobody could see it, nor in a STATUS that becomes DATA.
    RandomBit,
    /// Half of the packet, and then the end of the stream.
    Truncated,
    /// A type that no draft knows.
    TypeUnknown,
    /// A type that is no reply to this request: HANDLE for DATA and STATUS, DATA for the rest.
    TypeWrong,
}

impl Malform {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::BodyLengthHuge,
        Self::BodyLengthLong,
        Self::BodyLengthShort,
        Self::Garbage,
        Self::IdUnknown,
        Self::PacketLengthHuge,
        Self::PacketLengthLong,
        Self::PacketLengthShort,
        Self::PacketLengthZero,
        Self::RandomBit,
        Self::Truncated,
        Self::TypeUnknown,
        Self::TypeWrong,
    ];
}

/// All knobs of the model server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Text before VERSION (Q79).
    pub banner: Vec<u8>,
    /// The version in VERSION (Q76).
    pub version: u32,
    /// Names and data in VERSION.
    pub extensions: Vec<(Vec<u8>, Vec<u8>)>,
    /// The reply to `limits@openssh.com`; `None` answers OP_UNSUPPORTED.
    pub limits: Option<[u64; 4]>,
    /// The most bytes of one DATA reply (Q1 to Q13).
    pub read_cap: ReadCap,
    /// The READ that gets only so many bytes (Q9).
    pub tiny_read: Option<(u64, u32)>,
    /// From this READ on, so many in-range READs get an empty DATA (Q28).
    pub empty_reads: Option<(u64, u64)>,
    /// Every so-many-th READ that asked for fewer gets so many bytes (Q20, Q21).
    pub long_read: Option<(u64, u32)>,
    /// DATA ends with the `end-of-file` bool of version 6.
    pub data_ends_with_bool: bool,
    /// The READ that gets STATUS EOF although its offset is in range (Q11).
    pub early_eof: Option<u64>,
    /// STATUS EOF overtakes every DATA reply that is still being served (Q14).
    pub eof_overtakes: bool,
    /// Nanoseconds that a READ at or past the end takes (Q29).
    pub past_eof_delay: u64,
    /// The READ that fails, and its status code (Q16).
    pub read_error: Option<(u64, u32)>,
    /// Nanoseconds that each request takes, from the first to the second.
    pub service: (u64, u64),
    /// The request, counted over all kinds with INIT as the first, that takes so many more
    /// nanoseconds (Q48).
    pub slow_request: Option<(u64, u64)>,
    /// 0 answers in order; n answers any of the first n that are ready.
    pub reorder: usize,
    /// The test answers through `answer`; nothing is answered by itself, VERSION apart.
    pub manual: bool,
    /// Takes no input while a reply waits for channel credit (Q30, Q31).
    pub blocking: bool,
    /// The most READs outstanding; more are never answered (Q42).
    pub reads_outstanding_max: Option<usize>,
    /// The most open handles; an OPEN above gets FAILURE (Q44, Q55).
    pub handles_max: Option<usize>,
    /// The status code with which STAT is refused (Q45).
    pub stat_refused: Option<u32>,
    /// The status code with which LSTAT is refused (Q45).
    pub lstat_refused: Option<u32>,
    /// The status code with which FSTAT is refused (Q45).
    pub fstat_refused: Option<u32>,
    /// STAT, LSTAT and FSTAT fail while a file is open (Q44).
    pub stat_refused_while_open: bool,
    /// The size in attributes (Q17, Q18).
    pub size_attr: SizeAttr,
    /// Deletes the file that was read.
    pub delete_on: DeleteOn,
    /// What STATUS replies hold (Q74).
    pub status_form: StatusForm,
    /// What handles look like.
    pub handle_form: HandleForm,
    /// The reply, VERSION not counted, that is never sent (Q51).
    pub swallow: Option<u64>,
    /// The reply that is sent twice.
    pub duplicate: Option<u64>,
    /// The reply after which comes one that nobody asked for.
    pub unasked: Option<u64>,
    /// The reply that is broken, and how.
    pub malform: Option<(u64, Malform)>,
    /// The connection ends after this reply; 0 ends it in place of VERSION.
    pub close_after: Option<u64>,
    /// The connection ends at a READ that asks for more bytes than this.
    pub close_above_read_len: Option<u32>,
}

impl Default for Quirks {
    fn default() -> Self {
        let bytes = |(name, data): (&str, &str)| (name.into(), data.into());
        Self {
            banner: Vec::new(),
            version: 3,
            extensions: OPENSSH_EXTENSIONS.map(bytes).to_vec(),
            limits: Some(OPENSSH_LIMITS),
            read_cap: ReadCap::Fixed(261_120),
            tiny_read: None,
            empty_reads: None,
            long_read: None,
            data_ends_with_bool: false,
            early_eof: None,
            eof_overtakes: false,
            past_eof_delay: 0,
            read_error: None,
            service: (0, 0),
            slow_request: None,
            reorder: 0,
            manual: false,
            blocking: false,
            reads_outstanding_max: None,
            handles_max: None,
            stat_refused: None,
            lstat_refused: None,
            fstat_refused: None,
            stat_refused_while_open: false,
            size_attr: SizeAttr::Right,
            delete_on: DeleteOn::Never,
            status_form: StatusForm::Full,
            handle_form: HandleForm::Len(4),
            swallow: None,
            duplicate: None,
            unasked: None,
            malform: None,
            close_after: None,
            close_above_read_len: None,
        }
    }
}

impl Quirks {
    /// Takes all extensions away, `limits@openssh.com` among them, as on servers older than 2020.
    #[must_use]
    pub fn without_extensions(mut self) -> Self {
        self.extensions.clear();
        self.limits = None;
        self
    }

    /// Says whether `limits@openssh.com` is announced.
    #[must_use]
    pub fn announces_limits(&self) -> bool {
        self.extensions
            .iter()
            .any(|(name, _)| name == b"limits@openssh.com")
    }
}
