//! An etcd cluster of the test's own: real members on loopback, started, killed, stopped and restored.
//!
//! ```no_run
//! use fence_tests::etcd::Cluster;
//!
//! let mut cluster = Cluster::start();
//! let location = cluster.location("jobs"); // etcd://127.0.0.1:41123,127.0.0.1:38211,127.0.0.1:40417/jobs
//! let leader = cluster.leader();
//! cluster.kill(leader);
//! assert_ne!(cluster.leader(), leader);
//! cluster.restart(leader);
//! # drop(location);
//! ```
//!
//! Its data lies in memory, where the machine has such a folder; a heartbeat comes every 50 ms, and half a second without
//! one makes an election, so that the shortest ttl is 1 s. The members end with the value, and if the test process is
//! killed, by a shell that waits for the end of a pipe.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;

use crate::host::{self, Answer};
use crate::{DEADLINE, quick_folder, wait_until};

mod certificates;
mod proxy;

pub use certificates::Certificates;
pub use proxy::Proxy;

/// How often a cluster is started anew because somebody took a port meanwhile.
const STARTS: usize = 5;

/// A cluster. Members are numbered from 0.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Member>,
    keeper: Keeper,
    setup: Setup,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Member {
    client_port: u16,
    peer_port: u16,
    /// What the cluster calls it.
    id: u64,
    child: Option<Child>,
    stopped: bool,
}

/// What a cluster is like.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many members it has.
    pub members: usize,
    /// With TLS for clients, who then need these.
    pub certificates: Option<Arc<Certificates>>,
    /// It begins with the data of this snapshot.
    pub snapshot: Option<PathBuf>,
}

impl Default for Setup {
    /// Three members, no TLS, no data.
    fn default() -> Self {
        Self {
            members: 3,
            certificates: None,
            snapshot: None,
        }
    }
}

impl Cluster {
    /// Starts three members, and waits until they have a leader.
    ///
    /// # Panics
    ///
    /// When etcd is not installed or does not start; the message says what to install, or where its log is.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(Setup::default())
    }

    /// Starts a cluster that is like this.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn with(setup: Setup) -> Self {
        for _ in 0..STARTS {
            if let Some(cluster) = Self::try_start(&setup) {
                return cluster;
            }
        }
        panic!("no cluster could be started; etcd ended at once {STARTS} times");
    }

    fn try_start(setup: &Setup) -> Option<Self> {
        let ports = free_ports(2 * setup.members);
        let members = ports.chunks(2).map(|ports| Member {
            client_port: ports[0],
            peer_port: ports[1],
            id: 0,
            child: None,
            stopped: false,
        });
        let mut cluster = Self {
            members: members.collect(),
            keeper: Keeper::start(),
            setup: setup.clone(),
            folder: quick_folder(),
        };
        if let Some(snapshot) = &setup.snapshot {
            (0..setup.members).for_each(|member| cluster.restore(member, snapshot));
        }
        (0..setup.members).for_each(|member| cluster.spawn(member));
        // An election needs most of them.
        for member in 0..setup.members {
            cluster.members[member].id = cluster.wait_for_member(member)?;
        }
        Some(cluster)
    }

    /// Waits until the member knows a leader, and gives its id; nothing if it ended.
    fn wait_for_member(&mut self, member: usize) -> Option<u64> {
        let started = Instant::now();
        loop {
            if let Some((id, leader)) = self.status(member)
                && leader != 0
            {
                return Some(id);
            }
            let child = self.members[member].child.as_mut().expect("it was started");
            if child.try_wait().expect("a child of ours").is_some() {
                return None;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "member {member} does not come up: {}",
                self.log(member)
            );
        }
    }

    /// The location of the whole cluster with this prefix.
    pub fn location(&self, prefix: &str) -> String {
        let hosts = (0..self.members.len()).map(|member| self.endpoint(member));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("{}://{hosts}/{prefix}", self.scheme("etcd"))
    }

    /// Where clients find the member: `127.0.0.1:port`.
    pub fn endpoint(&self, member: usize) -> String {
        format!("127.0.0.1:{}", self.members[member].client_port)
    }

    /// Which member leads now. Waits until there is one, in the eyes of all members that run.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        wait_until("the members agree on a leader", || {
            let mut seen = self
                .running()
                .map(|member| self.status(member).map(|(_, leader)| leader));
            let first = seen.next().flatten();
            let agreed = first.filter(|first| *first != 0 && seen.all(|other| other == Some(*first)));
            leader = agreed.and_then(|id| self.running().find(|member| self.members[*member].id == id));
            leader.is_some()
        });
        leader.expect("the wait ended with one")
    }

    /// A running member that does not lead.
    #[track_caller]
    pub fn follower(&self) -> usize {
        let leader = self.leader();
        let mut others = self.running().filter(|member| *member != leader);
        others.next().expect("more than one member runs")
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        let runs = |member: &usize| self.members[*member].child.is_some() && !self.members[*member].stopped;
        (0..self.members.len()).filter(runs)
    }

    /// Kills the member (SIGKILL) and waits for its end.
    #[track_caller]
    pub fn kill(&mut self, member: usize) {
        let mut child = self.members[member].child.take().expect("it runs");
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        self.members[member].stopped = false;
        self.keeper.forget(child.id());
    }

    /// Starts a member that was killed, on the data that it has.
    #[track_caller]
    pub fn restart(&mut self, member: usize) {
        assert!(self.members[member].child.is_none(), "member {member} runs");
        self.spawn(member);
    }

    /// Waits until the member takes part again after a [`restart`](Self::restart).
    #[track_caller]
    pub fn wait_until_back(&mut self, member: usize) {
        let back = self.wait_for_member(member);
        assert!(back.is_some(), "member {member} ended: {}", self.log(member));
    }

    /// Lets the member stand still (SIGSTOP). Returns when it does.
    #[track_caller]
    pub fn stop(&mut self, member: usize) {
        let pid = self.pid(member);
        kill_process(pid, Signal::STOP).expect("a child of ours");
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).expect("a child of ours");
        assert!(
            stopped.is_some_and(|(_, status)| status.stopped()),
            "member {member} has ended"
        );
        self.members[member].stopped = true;
    }

    /// Lets the member go on after a [`stop`](Self::stop) (SIGCONT).
    #[track_caller]
    pub fn go_on(&mut self, member: usize) {
        kill_process(self.pid(member), Signal::CONT).expect("a child of ours");
        self.members[member].stopped = false;
    }

    /// Copies the whole data of a running member into a file of the cluster's folder.
    #[track_caller]
    pub fn snapshot(&self) -> PathBuf {
        let member = self.running().next().expect("a member runs");
        let file = self.folder.path().join("snapshot.db");
        let _ = std::fs::remove_file(&file);
        let mut save = self.command(&[member]);
        save.args(["snapshot", "save"]).arg(&file);
        succeed(save);
        file
    }

    /// A second cluster that begins with the data of a snapshot, as after a disaster: other members, another cluster id.
    #[track_caller]
    pub fn restored(snapshot: &Path) -> Self {
        Self::with(Setup {
            snapshot: Some(snapshot.to_owned()),
            ..Setup::default()
        })
    }

    /// Runs `etcdctl` on the members that run, to its end.
    #[track_caller]
    pub fn etcdctl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Answer {
        let mut command = self.etcdctl_command();
        command.args(arguments);
        host::run(command, "")
    }

    /// `etcdctl` on the members that run, to add arguments to.
    pub fn etcdctl_command(&self) -> Command {
        let running: Vec<usize> = self.running().collect();
        self.command(&running)
    }

    fn command(&self, members: &[usize]) -> Command {
        let scheme = self.scheme("http");
        let endpoints = members
            .iter()
            .map(|member| format!("{scheme}://{}", self.endpoint(*member)));
        let mut command = Command::new(program("etcdctl"));
        clean(&mut command);
        command.args(["--dial-timeout=1s", "--command-timeout=5s", "--endpoints"]);
        command.arg(endpoints.collect::<Vec<_>>().join(","));
        if let Some(certificates) = &self.setup.certificates {
            command.arg("--cacert").arg(certificates.ca());
            command.arg("--cert").arg(certificates.client());
            command.arg("--key").arg(certificates.client_key());
        }
        command
    }

    /// The member's id and whom it thinks to be the leader (0: nobody), if it answers.
    fn status(&self, member: usize) -> Option<(u64, u64)> {
        let mut status = self.command(&[member]);
        status.args(["endpoint", "status", "--write-out=json"]);
        let output = status.stderr(Stdio::null()).output().expect("etcdctl runs");
        let json: Value = serde_json::from_slice(&output.stdout).ok()?;
        let status = json.get(0)?.get("Status")?;
        let leader = status.get("leader").and_then(Value::as_u64).unwrap_or(0);
        Some((status.get("header")?.get("member_id")?.as_u64()?, leader))
    }

    fn scheme(&self, plain: &str) -> String {
        let s = if self.setup.certificates.is_some() { "s" } else { "" };
        format!("{plain}{s}")
    }

    fn pid(&self, member: usize) -> Pid {
        Pid::from_child(self.members[member].child.as_ref().expect("it runs"))
    }

    fn data(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("m{member}"))
    }

    /// What a member wrote to its log last.
    pub fn log(&self, member: usize) -> String {
        let log = std::fs::read_to_string(self.data(member).with_extension("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// What every member is told of all.
    fn initial_cluster(&self) -> [String; 2] {
        let peers = self.members.iter().enumerate();
        let peers = peers.map(|(member, ports)| format!("m{member}=http://127.0.0.1:{}", ports.peer_port));
        let peers = peers.collect::<Vec<_>>().join(",");
        // A cluster's id comes from its peers and this.
        let token = format!("fence-{}", self.members[0].peer_port);
        [
            format!("--initial-cluster={peers}"),
            format!("--initial-cluster-token={token}"),
        ]
    }

    fn restore(&self, member: usize, snapshot: &Path) {
        let mut restore = Command::new(program("etcdctl"));
        clean(&mut restore);
        restore.args(["snapshot", "restore"]).arg(snapshot);
        restore.arg(format!("--name=m{member}"));
        restore.arg("--data-dir").arg(self.data(member));
        restore.args(self.initial_cluster());
        let peer = self.members[member].peer_port;
        restore.arg(format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"));
        succeed(restore);
    }

    fn spawn(&mut self, member: usize) {
        let ports = &self.members[member];
        let client = format!("{}://127.0.0.1:{}", self.scheme("http"), ports.client_port);
        let peer = format!("http://127.0.0.1:{}", ports.peer_port);
        let log = self.data(member).with_extension("log");
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let mut etcd = Command::new(program("etcd"));
        clean(&mut etcd);
        etcd.arg(format!("--name=m{member}"))
            .arg("--data-dir")
            .arg(self.data(member))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .args(self.initial_cluster())
            .args([
                "--initial-cluster-state=new",
                "--heartbeat-interval=50",
                "--election-timeout=500",
            ])
            .args(["--logger=zap", "--log-level=warn"]);
        if let Some(certificates) = &self.setup.certificates {
            etcd.arg("--cert-file").arg(certificates.server());
            etcd.arg("--key-file").arg(certificates.server_key());
            etcd.arg("--client-cert-auth")
                .arg("--trusted-ca-file")
                .arg(certificates.ca());
        }
        etcd.stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        let child = etcd.spawn().unwrap_or_else(|e| panic!("cannot start {etcd:?}: {e}"));
        self.keeper.remember(child.id());
        self.members[member].child = Some(child);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut child) = member.child.take() {
                let _ = child.kill();
                let _ = child.wait();
                self.keeper.forget(child.id());
            }
        }
    }
}

/// Where the program is.
fn program(name: &'static str) -> &'static Path {
    static ETCD: OnceLock<PathBuf> = OnceLock::new();
    static ETCDCTL: OnceLock<PathBuf> = OnceLock::new();
    let known = if name == "etcd" { &ETCD } else { &ETCDCTL };
    known.get_or_init(|| host::find(name))
}

/// Runs what may complain as it likes, if only it succeeds.
#[track_caller]
fn succeed(command: Command) {
    let answer = host::run(command, "");
    assert!(answer.status.success(), "{answer}");
}

/// Without the user's own settings.
fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD") {
            command.env_remove(name);
        }
    }
}

/// So many ports that nobody listens at. Somebody may before we do.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let listeners: Vec<TcpListener> = listeners.collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("its address").port();
    listeners.iter().map(port).collect()
}

/// A shell that outlives this process for a moment, and kills what this process has left behind.
#[derive(Debug)]
struct Keeper {
    shell: Child,
    orders: Option<ChildStdin>,
}

impl Keeper {
    /// It ignores what a terminal sends to all of its processes, and ends with the pipe.
    const SCRIPT: &str = r#"
        trap '' INT HUP TERM
        left=' '
        while read -r order pid; do
          case $order in
            remember) left="$left$pid " ;;
            forget) left="${left%% $pid *} ${left#* $pid }" ;;
          esac
        done
        for pid in $left; do kill -9 "$pid"; done 2>/dev/null
    "#;

    fn start() -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", Self::SCRIPT]).stdin(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let orders = shell.stdin.take();
        Self { shell, orders }
    }

    fn remember(&mut self, pid: u32) {
        self.order("remember", pid);
    }

    fn forget(&mut self, pid: u32) {
        self.order("forget", pid);
    }

    fn order(&mut self, order: &str, pid: u32) {
        let orders = self.orders.as_mut().expect("the pipe is open");
        // Who cannot be told is gone; then the test's own end is all there is.
        let _ = writeln!(orders, "{order} {pid}");
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.shell.wait();
    }
}
