// A jbb-style load: order entry of warehouses, each a thread with an H2 database in memory.
//
// The mix is that of order-entry benchmarks: new orders and payments alike, and now and then an
// order's status, a delivery and a look at the stock. No figure of it is one of SPECjbb.
//
// java -cp h2.jar:FOLDER OrderEntry WAREHOUSES WARM_UP_S MEASURE_S
//
// Prints a line of JSON for each second of measuring, and one in the end.

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

public final class OrderEntry {
    static final int ITEMS = 10_000;
    static final int CUSTOMERS = 3_000;
    static volatile boolean isRunning = true;
    static volatile Throwable failure;

    static final class Warehouse extends Thread {
        final AtomicLong done = new AtomicLong();
        final SplittableRandom random;
        final Connection connection;
        final PreparedStatement price, take, order, line, pay, status, oldest, deliver, low;
        long orders;

        Warehouse(int number) throws SQLException {
            random = new SplittableRandom(number + 1);
            connection = DriverManager.getConnection("jdbc:h2:mem:warehouse" + number);
            connection.setAutoCommit(false);
            try (Statement make = connection.createStatement()) {
                make.execute("CREATE TABLE item(id INT PRIMARY KEY, price INT, stock INT)");
                make.execute("CREATE TABLE customer(id INT PRIMARY KEY, balance BIGINT, payments INT)");
                make.execute("CREATE TABLE orders(id BIGINT PRIMARY KEY, customer INT, total BIGINT, is_open BOOLEAN)");
                make.execute("CREATE TABLE line(id BIGINT, item INT, count INT, PRIMARY KEY(id, item))");
                make.execute("CREATE INDEX by_customer ON orders(customer)");
                make.execute("INSERT INTO item SELECT x, 100 + MOD(x * 37, 900), 100 FROM SYSTEM_RANGE(0, " + (ITEMS - 1) + ")");
                make.execute("INSERT INTO customer SELECT x, 0, 0 FROM SYSTEM_RANGE(0, " + (CUSTOMERS - 1) + ")");
            }
            connection.commit();
            price = connection.prepareStatement("SELECT price FROM item WHERE id = ?");
            take = connection.prepareStatement("UPDATE item SET stock = CASE WHEN stock > 10 THEN stock - ? ELSE stock + 91 END WHERE id = ?");
            order = connection.prepareStatement("INSERT INTO orders VALUES(?, ?, ?, TRUE)");
            line = connection.prepareStatement("MERGE INTO line KEY(id, item) VALUES(?, ?, ?)");
            pay = connection.prepareStatement("UPDATE customer SET balance = balance - ?, payments = payments + 1 WHERE id = ?");
            status = connection.prepareStatement("SELECT id, total FROM orders WHERE customer = ? ORDER BY id DESC LIMIT 1");
            oldest = connection.prepareStatement("SELECT MIN(id) FROM orders");
            deliver = connection.prepareStatement("DELETE FROM orders WHERE id < ?");
            low = connection.prepareStatement("SELECT COUNT(*) FROM item WHERE id BETWEEN ? AND ? AND stock < 20");
        }

        void one() throws SQLException {
            int kind = random.nextInt(23);
            if (kind < 10) {
                newOrder();
            } else if (kind < 20) {
                pay.setInt(1, 1 + random.nextInt(5_000));
                pay.setInt(2, random.nextInt(CUSTOMERS));
                pay.executeUpdate();
            } else if (kind == 20) {
                status.setInt(1, random.nextInt(CUSTOMERS));
                read(status);
            } else if (kind == 21) {
                delivery();
            } else {
                int first = random.nextInt(ITEMS - 100);
                low.setInt(1, first);
                low.setInt(2, first + 99);
                read(low);
            }
            connection.commit();
        }

        void newOrder() throws SQLException {
            long id = orders++, total = 0;
            int lines = 5 + random.nextInt(11);
            for (int at = 0; at < lines; at++) {
                int item = random.nextInt(ITEMS), count = 1 + random.nextInt(10);
                price.setInt(1, item);
                total += read(price) * count;
                take.setInt(1, count);
                take.setInt(2, item);
                take.executeUpdate();
                line.setLong(1, id);
                line.setInt(2, item);
                line.setInt(3, count);
                line.executeUpdate();
            }
            order.setLong(1, id);
            order.setInt(2, random.nextInt(CUSTOMERS));
            order.setLong(3, total);
            order.executeUpdate();
        }

        // Keeps as many orders as were made lately, so that the heap stays as it is.
        void delivery() throws SQLException {
            if (read(oldest) + 2_000 < orders) {
                deliver.setLong(1, orders - 1_000);
                deliver.executeUpdate();
                try (Statement clean = connection.createStatement()) {
                    clean.execute("DELETE FROM line WHERE id < " + (orders - 1_000));
                }
            }
        }

        static long read(PreparedStatement statement) throws SQLException {
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getLong(1) : 0;
            }
        }

        @Override
        public void run() {
            try {
                while (isRunning) {
                    one();
                    done.incrementAndGet();
                }
            } catch (Throwable error) {
                failure = error;
                isRunning = false;
            }
        }
    }

    static long collected(boolean isTime) {
        long sum = 0;
        for (GarbageCollectorMXBean of : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += isTime ? of.getCollectionTime() : of.getCollectionCount();
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        long warmUp = Long.parseLong(arguments[1]), measure = Long.parseLong(arguments[2]);
        Warehouse[] warehouses = new Warehouse[count];
        for (int at = 0; at < count; at++) {
            warehouses[at] = new Warehouse(at);
            warehouses[at].setDaemon(true);
        }
        for (Warehouse of : warehouses) {
            of.start();
        }
        Thread.sleep(warmUp * 1000);
        long began = System.nanoTime(), pauses = collected(true), collections = collected(false);
        long first = sum(warehouses), last = first, before = began;
        for (long second = 1; second <= measure && isRunning; second++) {
            long until = began + second * 1_000_000_000L;
            while (System.nanoTime() < until) {
                Thread.sleep(Math.max(1, (until - System.nanoTime()) / 1_000_000));
            }
            long now = System.nanoTime(), all = sum(warehouses);
            System.out.printf("{\"at_s\":%.3f,\"per_s\":%.1f}%n", (now - began) / 1e9, (all - last) * 1e9 / (now - before));
            last = all;
            before = now;
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        isRunning = false;
        if (failure != null) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.out.printf("{\"per_s\":%.1f,\"pauses_ms\":%d,\"collections\":%d,\"seconds\":%.3f}%n",
            (last - first) / seconds, collected(true) - pauses, collected(false) - collections, seconds);
        System.exit(0);
    }

    static long sum(Warehouse[] warehouses) {
        long sum = 0;
        for (Warehouse of : warehouses) {
            sum += of.done.get();
        }
        return sum;
    }
}
