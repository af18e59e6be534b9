//! `fence sql`: the functions built in, and scripts run as the sqlite3 shell runs them.

mod fence;

use fence::{fence, run, status};
use fence_tests::{Answer, Shell, folder, host};

/// Runs a script by way of the standard input.
fn script(folder: &tempfile::TempDir, arguments: &[&str], sql: &str) -> Answer {
    host::run(fence(folder, [&["sql"], arguments].concat()), sql)
}

#[test]
fn every_function_and_table_of_the_extension_is_built_in() {
    let folder = folder();
    for list in [
        "select name, narg, flags & 0x280800 from pragma_function_list
          where name like 'fence%' or name like 'semaphore%' order by 1, 2",
        "select name from pragma_module_list where name like 'fence%' or name like 'semaphore%' order by 1",
    ] {
        let built_in = run(&folder, ["sql", ":memory:", list]).ok();
        assert_eq!(built_in, Shell::new().run(&format!("{list};")).ok());
        assert!(built_in.contains("fence_acquire"), "{built_in}");
    }
}

#[test]
fn a_script_prints_what_the_sqlite3_shell_prints() {
    let folder = folder();
    let sql = "create table t (a, b);
               insert into t values (1, 'x'), (2.0, null), (-0.1, 'a|b'), (1e300, x'4142'), (9007199254740993, '');
               -- a comment; with a semicolon
               select * from t; select
                 count(*)
               from t;

               create trigger stale before update on t begin select raise(abort, 'no; never'); end;
               select fence_pad(7), fence_ok('9', '10'), typeof(fence_blob('7'));
               select 'no semicolon at the end'";
    let ours = script(&folder, &["ours.db"], sql).ok();
    assert_eq!(ours, Shell::new().on(folder.path().join("theirs.db")).run(sql).ok());
    assert!(ours.ends_with("1|blob\nno semicolon at the end"), "{ours}");
}

#[test]
fn a_script_stops_at_its_first_error_and_names_the_line() {
    let folder = folder();
    let sql = "select 1;\n\nselect\n  missing;\nselect 2;\n";
    let stopped = script(&folder, &[], sql);
    assert_eq!((status(&stopped), stopped.out.as_str()), (1, "1\n"));
    assert_eq!(stopped.err, "fence: line 3: no such column: missing\n");
    let kept_going = script(&folder, &["--keep-going"], sql);
    assert_eq!((status(&kept_going), kept_going.out.as_str()), (1, "1\n2\n"));
    assert_eq!(kept_going.err, stopped.err);

    let ours = script(&folder, &[], "select fence_ok(1.5, 7);");
    assert_eq!(status(&ours), 1);
    assert!(
        ours.err
            .starts_with("fence: line 1: not a fence: fence_ok(stored) is 1.5"),
        "{}",
        ours.err
    );
    let dotted = script(&folder, &[], ".load ./fence\n");
    assert_eq!(status(&dotted), 1);
    assert!(
        dotted.err.contains("'.load ./fence' is a command of another shell"),
        "{}",
        dotted.err
    );
    let unopened = run(&folder, ["sql", "no/such/folder/app.db", "select 1"]);
    assert_eq!(status(&unopened), 2, "{unopened}");
}

#[test]
fn the_store_of_a_script_is_that_of_the_extension() {
    let folder = folder();
    let acquire = "select fence_acquire('k') is not null";
    assert_eq!(run(&folder, ["sql", "app.db", acquire]).ok(), "1");
    let shell = Shell::new().on(folder.path().join("other.db"));
    assert_eq!(shell.run(&format!("{acquire};")).ok(), "0", "kv.db beside both");
    assert_eq!(
        run(&folder, ["sql", "--store", "elsewhere.db", "app.db", acquire]).ok(),
        "1"
    );
    let listed = run(&folder, ["list", "--store", "elsewhere.db"]).ok();
    assert_eq!(listed.matches("\"k\"").count(), 1, "{listed}");
}
