<?php
// PHP's SQLite3 class. It loads extensions by name from one folder only: sqlite3.extension_dir in php.ini.

// [how]
function connect(string $database): SQLite3
{
    $db = new SQLite3($database);
    $db->enableExceptions(true);
    $db->loadExtension('fence.so');
    return $db;
}

// php -d sqlite3.extension_dir=/path/to/dist app.php
// [end]

function wrong(string $what, callable $do): void
{
    set_error_handler(fn ($level, $message) => throw new ErrorException($message));
    try {
        $do();
    } catch (Throwable $error) {
        echo "wrong: $what: ", get_class($error) === 'ErrorException' ? 'Warning' : get_class($error), ': ',
            $error->getMessage(), "\n";
        return;
    } finally {
        restore_error_handler();
    }
    throw new Exception("$what went well");
}

function must(bool $holds, string $otherwise): void
{
    if (!$holds) {
        throw new Exception($otherwise);
    }
}

$db = connect('app.db');
echo 'SQLite ', SQLite3::version()['versionString'], "\n";
$db->exec("create table chats (id integer primary key, summary text, summary_fence text not null default '');
           insert into chats (id) values (42)");
$fence = $db->querySingle("select fence_acquire('chat:42', 30000)");
$save = $db->prepare('update chats set summary = :text, summary_fence = fence_pad(:fence)
                       where id = 42 and fence_ok(summary_fence, :fence)');
foreach ([[$fence, 1], ['7', 0]] as [$given, $changes]) {
    $save->bindValue(':text', 'a summary');
    $save->bindValue(':fence', $given, SQLITE3_TEXT);
    $save->execute()->finalize();
    must($db->changes() === $changes, "$given: {$db->changes()}");
    $save->reset();
}
must($db->querySingle("select fence_release('chat:42', '$fence')") === 1, 'not released');

// As FPM's workers, each a process of its own. They load the library themselves.
$workers = [];
for ($i = 0; $i < 4; $i++) {
    $command = [PHP_BINARY, '-d', 'sqlite3.extension_dir=' . ini_get('sqlite3.extension_dir'), '-r',
        '$db = new SQLite3("app.db"); $db->loadExtension("fence.so");
         echo $db->querySingle("select fence from fence_acquire(\'turn\', 5, 60000)");'];
    $workers[] = [proc_open($command, [1 => ['pipe', 'w']], $pipes), $pipes[1]];
}
$fences = array_map(function ($worker) {
    $given = stream_get_contents($worker[1]);
    must(proc_close($worker[0]) === 0, 'a worker failed');
    return $given;
}, $workers);
must(count(array_unique($fences)) === 4, 'not four fences: ' . implode(' ', $fences));

wrong('a path in place of a name', fn () => (new SQLite3(':memory:'))->loadExtension($argv[1]));
wrong('in a connection that did not load it', function () {
    $plain = new SQLite3(':memory:');
    $plain->enableExceptions(true);
    $plain->querySingle("select fence_acquire('k')");
});
wrong('a fence that became a float', fn () => $db->querySingle('select fence_pad(' . 33132838977483490749893836800001 . ')'));
wrong('PDO, which loads no extensions before PHP 8.4', fn () => (new PDO('sqlite::memory:'))->query("select load_extension('fence')"));
echo "ok\n";
