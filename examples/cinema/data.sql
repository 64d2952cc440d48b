-- Demo data for schema.sql: invented, plausible, and the same on every machine.
--
-- Nothing here is random: each value follows from the number of its row through md5, so two databases
-- filled by this script are equal row by row. A second run adds nothing.
--
-- Sizes are settings of the session; unset ones take the default:
--   SET cinema.films   = '1000';     rows of content.film_work
--   SET cinema.people  = '4000';     rows of content.person, at least 16
--   SET cinema.ratings = '50000';    rows of ugc.ratings
-- A larger size on a filled database adds rows and leaves the existing ones as they are.
--
-- The whole file is one script for a simple query: it has no psql commands, and runs in one transaction.

-- Helpers; they live in the session's temporary schema and are dropped at the end. -----------------

CREATE OR REPLACE FUNCTION pg_temp.cinema_size(setting text, fallback bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting(setting, true), '')::bigint, fallback)
$$;

-- A name-based UUID (version 3: made of md5).
CREATE OR REPLACE FUNCTION pg_temp.cinema_uuid(label text, n bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
  SELECT overlay(overlay(md5(label || ' ' || n::text) PLACING '3' FROM 13) PLACING '8' FROM 17)::uuid
$$;

-- A number of 60 bits that looks random. Below it often serves as a box of independent small numbers:
-- h % 1000, h / 1000 % 1000, h / 1000000 % 1000 and so on.
CREATE OR REPLACE FUNCTION pg_temp.cinema_hash(label text, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT ('x' || left(md5(label || ' ' || n::text), 15))::bit(60)::bigint
$$;

-- A moment within some days after a start, to the microsecond.
CREATE OR REPLACE FUNCTION pg_temp.cinema_moment(start timestamptz, days bigint, h bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT start + interval '1 microsecond' * (h % (days * 86400000000))
$$;

-- When a film came into the catalogue. The known titles and one film of twenty came with the first
-- import: they share one moment, as rows loaded together do.
CREATE OR REPLACE FUNCTION pg_temp.cinema_film_created(n bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN n <= 26 OR n % 20 = 0 THEN timestamptz '2021-06-16 20:14:09.310212+00'
    ELSE pg_temp.cinema_moment('2021-06-17 00:00:00+00', 900, pg_temp.cinema_hash('film created', n))
  END
$$;

-- How good a film is, in tenths: 2.6 to 9.8, most of them around 6. The catalogue shows it as the
-- film's rating, and the users' ratings scatter around it.
CREATE OR REPLACE FUNCTION pg_temp.cinema_film_quality(n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN n <= 26 THEN 68 + pg_temp.cinema_hash('film quality', n) % 18
    ELSE least(98, 26 + pg_temp.cinema_hash('film quality', n) % 27
                      + pg_temp.cinema_hash('film quality', n) / 1000 % 27
                      + pg_temp.cinema_hash('film quality', n) / 1000000 % 24)
  END
$$;

-- Large sizes: fill first, index afterwards. --------------------------------------------------------
-- Millions of rows with random keys are loaded many times faster into bare tables. If the tables are
-- still empty and much is about to come, their keys, indexes and foreign keys are dropped here, and
-- made again from the same definitions after the last insert, all in one transaction.

CREATE TEMPORARY TABLE IF NOT EXISTS cinema_rebuild (step integer, statement text);

DO $do$
DECLARE
  tables constant regclass[] := ARRAY[
    'content.film_work', 'content.genre', 'content.genre_film_work', 'content.person',
    'content.person_film_work', 'ugc.ratings'
  ]::regclass[];
  name regclass;
  filled boolean;
  statement text;
BEGIN
  IF pg_temp.cinema_size('cinema.films', 1000) + pg_temp.cinema_size('cinema.people', 4000)
     + pg_temp.cinema_size('cinema.ratings', 50000) < 500000 THEN
    RETURN;
  END IF;
  FOREACH name IN ARRAY tables LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', name) INTO filled;
    IF filled THEN
      RETURN;
    END IF;
  END LOOP;

  -- Keys first, other indexes next, foreign keys last.
  INSERT INTO pg_temp.cinema_rebuild (step, statement)
  SELECT
    CASE c.contype WHEN 'f' THEN 3 ELSE 1 END,
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
  FROM pg_catalog.pg_constraint AS c
  WHERE c.conrelid = ANY (tables) AND c.contype IN ('p', 'u', 'f')
  UNION ALL
  SELECT 2, pg_get_indexdef(i.indexrelid)
  FROM pg_catalog.pg_index AS i
  WHERE i.indrelid = ANY (tables)
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS c WHERE c.conindid = i.indexrelid);

  FOR statement IN
    SELECT d.statement
    FROM (
      SELECT
        CASE c.contype WHEN 'f' THEN 1 ELSE 2 END AS step,
        format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname) AS statement
      FROM pg_catalog.pg_constraint AS c
      WHERE c.conrelid = ANY (tables) AND c.contype IN ('p', 'u', 'f')
      UNION ALL
      SELECT 3, format('DROP INDEX %s', i.indexrelid::regclass)
      FROM pg_catalog.pg_index AS i
      WHERE i.indrelid = ANY (tables)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS c WHERE c.conindid = i.indexrelid)
    ) AS d
    ORDER BY d.step
  LOOP
    EXECUTE statement;
  END LOOP;
END
$do$;

-- Genres --------------------------------------------------------------------------------------------

INSERT INTO content.genre (id, name, description, created, modified)
SELECT
  pg_temp.cinema_uuid('genre', g.n),
  g.name,
  g.description,
  timestamptz '2021-06-16 20:14:09.309836+00',
  CASE
    WHEN g.n % 4 = 0
      THEN pg_temp.cinema_moment('2021-07-01 00:00:00+00', 500, pg_temp.cinema_hash('genre modified', g.n))
    ELSE timestamptz '2021-06-16 20:14:09.309836+00'
  END
FROM (VALUES
  -- The common ones first: films prefer the head of this list.
  (1, 'Drama', 'Serious stories about people and their conflicts'),
  (2, 'Comedy', 'Made to be laughed at'),
  (3, 'Action', 'Chases, fights and explosions'),
  (4, 'Adventure', 'Journeys into the unknown'),
  (5, 'Sci-Fi', 'Science, the future and other worlds'),
  (6, 'Thriller', 'Suspense from the first minute to the last'),
  (7, 'Romance', 'Love stories, happy and otherwise'),
  (8, 'Crime', 'Criminals and those who look for them'),
  (9, 'Mystery', 'A riddle to be solved'),
  (10, 'Horror', 'Made to frighten'),
  (11, 'Fantasy', 'Magic and creatures that never were'),
  (12, 'Animation', 'Drawn, modelled or rendered'),
  (13, 'Family', 'For all ages'),
  (14, 'Documentary', 'What really happened'),
  (15, 'Biography', 'The life of a real person'),
  (16, 'History', 'Set in the past and true to it'),
  (17, 'Music', 'Musicians and their work'),
  (18, 'War', 'Soldiers, fronts and the home front'),
  (19, 'Sport', 'Training, matches and victories'),
  (20, 'Western', 'The frontier of the Old West'),
  (21, 'Musical', 'The story is sung'),
  (22, 'Short', 'Under forty minutes'),
  (23, 'Reality-TV', NULL),
  (24, 'Talk-Show', NULL),
  (25, 'Game-Show', NULL),
  (26, 'News', NULL)
) AS g (n, name, description)
ON CONFLICT DO NOTHING;

-- People: four of five have a Latin name, one of five a Cyrillic one. All are invented. -------------

WITH words AS MATERIALIZED (
  SELECT
    ARRAY[
      'Ada', 'Adrian', 'Alba', 'Alistair', 'Amara', 'Anton', 'Astrid', 'Basil', 'Beatrix', 'Bruno', 'Callum',
      'Camille', 'Cedric', 'Clara', 'Conrad', 'Cora', 'Dafne', 'Dorian', 'Edith', 'Edmund', 'Elena', 'Elias',
      'Esme', 'Fabian', 'Felix', 'Flora', 'Gideon', 'Greta', 'Hanna', 'Hector', 'Hugo', 'Ida', 'Imogen',
      'Ingrid', 'Ivo', 'Jasper', 'Joana', 'Julian', 'Karin', 'Lars', 'Leonie', 'Linus', 'Lorenz', 'Lucia',
      'Magnus', 'Mara', 'Marius', 'Matilda', 'Milo', 'Nadia', 'Nils', 'Noor', 'Octavia', 'Olaf', 'Opal',
      'Oscar', 'Paloma', 'Percy', 'Petra', 'Quentin', 'Rafael', 'Rhea', 'Rowan', 'Runa', 'Selma', 'Silas',
      'Simone', 'Soren', 'Tamsin', 'Theo', 'Tilda', 'Tobias', 'Ursula', 'Vera', 'Viktor', 'Wanda', 'Wilfred',
      'Ximena', 'Yara', 'Zelda'
    ] AS given,
    ARRAY[
      'Abernale', 'Aldercott', 'Almqvist', 'Amberley', 'Ashgrove', 'Barlowe', 'Bellweather', 'Bergstrand',
      'Birkholm', 'Blackmere', 'Brandelius', 'Bruyneel', 'Calverley', 'Carrowmore', 'Castellane', 'Colebrand',
      'Cranwick', 'Dalgaard', 'Delacorte', 'Drayfield', 'Dunsmere', 'Eastlake', 'Ekholm', 'Ellingrove',
      'Fairbourne', 'Falkenau', 'Farrowdale', 'Fenwright', 'Fiorentino', 'Gallowglass', 'Garrowby', 'Glasswell',
      'Grevenor', 'Halvorsen', 'Harrowgate', 'Hawksmere', 'Heidenau', 'Holloway', 'Ibarrola', 'Inglethorpe',
      'Jansonius', 'Jarnefors', 'Kestrel', 'Kilbride', 'Kingsnorth', 'Lachlane', 'Larkspur', 'Lindqvist',
      'Lockridge', 'Loveridge', 'Malmsten', 'Marchetti', 'Merriweather', 'Montclair', 'Mossgrave', 'Nachtigall',
      'Netherby', 'Nightwell', 'Nordahl', 'Oakhurst', 'Ormonde', 'Osterberg', 'Pemberley', 'Penhallow',
      'Pettibone', 'Quillfeather', 'Ravensworth', 'Redfern', 'Rosendale', 'Rutherglen', 'Sandoval', 'Seabright',
      'Silverdale', 'Skarsholm', 'Stonebridge', 'Strandberg', 'Tallis', 'Thackwell', 'Thornbury', 'Tidewell',
      'Underhill', 'Valcourt', 'Vandermeer', 'Vintergren', 'Wainscott', 'Weatherby', 'Westergaard', 'Whitlock',
      'Winterbourne', 'Wolfenden', 'Wrexford', 'Yarborough', 'Yellowlees', 'Zabriskie', 'Zetterlund', 'Zilberman'
    ] AS family,
    ARRAY[
      'Алексей', 'Антон', 'Артём', 'Борис', 'Вадим', 'Виктор', 'Глеб', 'Денис', 'Егор', 'Захар', 'Игнат', 'Илья',
      'Кирилл', 'Лев', 'Макар', 'Матвей', 'Никита', 'Олег', 'Павел', 'Роман', 'Семён', 'Тимофей', 'Фёдор', 'Ян'
    ] AS given_ru_m,
    ARRAY[
      'Алиса', 'Анна', 'Варвара', 'Вера', 'Дарья', 'Ева', 'Елена', 'Жанна', 'Зоя', 'Инна', 'Ирина', 'Кира',
      'Ксения', 'Лидия', 'Майя', 'Марина', 'Нина', 'Ольга', 'Полина', 'Раиса', 'София', 'Таисия', 'Ульяна', 'Юлия'
    ] AS given_ru_f,
    -- Surnames whose feminine form is the masculine one with «а».
    ARRAY[
      'Азарьев', 'Березников', 'Ветлугин', 'Волжанов', 'Гореликов', 'Грачевников', 'Дубровкин', 'Ельчанинов',
      'Журавлихин', 'Заречнов', 'Звонов', 'Ильменёв', 'Калинников', 'Клёнов', 'Ключевников', 'Лебяжьев',
      'Лозовников', 'Маяков', 'Метелицын', 'Низовцев', 'Огородов', 'Приозёрнов', 'Перекатов', 'Перелесов', 'Рассветов',
      'Речников', 'Рябинников', 'Синичкин', 'Снежников', 'Тополев', 'Травников', 'Туманников', 'Угрюмов', 'Устьянцев',
      'Фонарёв', 'Хвоин', 'Холмов', 'Цветков', 'Чащин', 'Шиповников', 'Щукарёв', 'Ягодин'
    ] AS family_ru
),
draw AS MATERIALIZED (
  SELECT
    s.n,
    pg_temp.cinema_hash('person name', s.n) AS h,
    pg_temp.cinema_moment('2021-06-16 20:14:09.311000+00', 900, pg_temp.cinema_hash('person created', s.n)) AS created
  FROM generate_series(1, greatest(pg_temp.cinema_size('cinema.people', 4000), 16)) AS s (n)
)
INSERT INTO content.person (id, full_name, created, modified)
SELECT
  pg_temp.cinema_uuid('person', d.n),
  CASE
    WHEN d.h % 10 = 0 THEN
      w.given_ru_m[1 + d.h / 1000 % cardinality(w.given_ru_m)] || ' '
      || w.family_ru[1 + d.h / 1000000 % cardinality(w.family_ru)]
    WHEN d.h % 10 = 1 THEN
      w.given_ru_f[1 + d.h / 1000 % cardinality(w.given_ru_f)] || ' '
      || w.family_ru[1 + d.h / 1000000 % cardinality(w.family_ru)] || 'а'
    WHEN d.h % 10 <= 5 THEN
      w.given[1 + d.h / 1000 % cardinality(w.given)] || ' '
      || chr(65 + (d.h / 1000000000 % 26)::integer) || '. '
      || w.family[1 + d.h / 1000000 % cardinality(w.family)]
    ELSE
      w.given[1 + d.h / 1000 % cardinality(w.given)] || ' '
      || w.family[1 + d.h / 1000000 % cardinality(w.family)]
  END,
  d.created,
  CASE
    WHEN d.n % 5 = 0 THEN pg_temp.cinema_moment(d.created, 365, pg_temp.cinema_hash('person modified', d.n))
    ELSE d.created
  END
FROM draw AS d
CROSS JOIN words AS w
ON CONFLICT DO NOTHING;

-- Films: 26 known titles, then composed ones, one of five of them in Russian. -----------------------
-- Composed titles start with T to Z or a Cyrillic letter: in alphabetical order the known ones lead.

WITH known (n, title, type, creation_date, rating, description) AS (VALUES
  (1, 'Star Wars: Episode IV - A New Hope', 'movie', date '1977-05-25', 8.6,
    'A farm boy, a smuggler and a princess set out against the Empire''s new battle station.'),
  (2, 'Star Wars: Episode V - The Empire Strikes Back', 'movie', date '1980-05-21', 8.7,
    'The rebels lose their base, and Luke learns more about his father than he wanted to.'),
  (3, 'Star Wars: Episode VI - Return of the Jedi', 'movie', date '1983-05-25', 8.3,
    'A second battle station is being built, and a forest moon decides the war.'),
  (4, 'Star Wars: Episode I - The Phantom Menace', 'movie', date '1999-05-19', 6.5,
    'A blockade brings two Jedi to a desert planet and to a gifted boy.'),
  (5, 'Star Wars: Episode II - Attack of the Clones', 'movie', date '2002-05-16', 6.6,
    'An attempt on a senator''s life leads to an army nobody remembers ordering.'),
  (6, 'Star Wars: Episode III - Revenge of the Sith', 'movie', date '2005-05-19', 7.6,
    'The Republic falls, and with it the best of the young Jedi.'),
  (7, 'Star Wars: Episode VII - The Force Awakens', 'movie', date '2015-12-18', 7.8,
    'A scavenger and a deserter carry a map that everybody wants.'),
  (8, 'Star Wars: Episode VIII - The Last Jedi', 'movie', date '2017-12-15', 6.9,
    'The last of the Jedi does not want to be found, still less to teach.'),
  (9, 'Star Wars: Episode IX - The Rise of Skywalker', 'movie', date '2019-12-20', 6.4,
    'An old enemy returns, and the last battle is fought under his fleet.'),
  (10, 'Star Wars: The Clone Wars', 'tv_show', date '2008-10-03', 8.4,
    'Jedi and clones on every front of a war between two halves of the galaxy.'),
  (11, 'Star Wars: Rebels', 'tv_show', date '2014-10-03', 8.1,
    'The crew of one small ship make trouble for the Empire before the rebellion has a name.'),
  (12, 'Star Trek: The Motion Picture', 'movie', date '1979-12-07', 6.4,
    'A cloud of immense power is on its way to Earth, and it is looking for its maker.'),
  (13, 'Star Trek II: The Wrath of Khan', 'movie', date '1982-06-04', 7.7,
    'An exile escapes and comes for the man who left him behind.'),
  (14, 'Star Trek III: The Search for Spock', 'movie', date '1984-06-01', 6.6,
    'The crew steal their own ship to bring a friend home.'),
  (15, 'Star Trek IV: The Voyage Home', 'movie', date '1986-11-26', 7.3,
    'To save Earth somebody has to fetch two whales from the twentieth century.'),
  (16, 'Star Trek V: The Final Frontier', 'movie', date '1989-06-09', 5.5,
    'A preacher hijacks the Enterprise to look for what lies at the centre of the galaxy.'),
  (17, 'Star Trek VI: The Undiscovered Country', 'movie', date '1991-12-06', 7.2,
    'Peace with the old enemy is near, and not everybody wants it.'),
  (18, 'Star Trek: Generations', 'movie', date '1994-11-18', 6.6,
    'Two captains of two centuries meet where time does not pass.'),
  (19, 'Star Trek: First Contact', 'movie', date '1996-11-22', 7.6,
    'The Borg travel back to the day when mankind first met its neighbours.'),
  (20, 'Star Trek: Insurrection', 'movie', date '1998-12-11', 6.4,
    'The crew disobey orders to protect six hundred people on a planet that keeps them young.'),
  (21, 'Star Trek: Nemesis', 'movie', date '2002-12-13', 6.4,
    'The new ruler of Romulus looks uncomfortably familiar to the captain.'),
  (22, 'Star Trek', 'movie', date '2009-05-08', 7.9,
    'How a reckless cadet and a logical officer came to serve on one bridge.'),
  (23, 'Star Trek Into Darkness', 'movie', date '2013-05-16', 7.7,
    'The hunt for one man leads the Enterprise to the edge of a war.'),
  (24, 'Star Trek Beyond', 'movie', date '2016-07-22', 7.1,
    'The ship is lost, and its crew are scattered over an unknown planet.'),
  (25, 'Star Trek: The Next Generation', 'tv_show', date '1987-09-28', 8.7,
    'A new Enterprise and a new crew, a century later.'),
  (26, 'Star Trek: Deep Space Nine', 'tv_show', date '1993-01-03', 8.1,
    'A station at the mouth of a wormhole, and everybody who passes through.')
),
words AS MATERIALIZED (
  SELECT
    ARRAY[
      'Amber', 'Ancient', 'Autumn', 'Bitter', 'Black', 'Blue', 'Borrowed', 'Brass', 'Broken', 'Burning', 'Clockwork',
      'Cold', 'Crimson', 'Crystal', 'Distant', 'Dreaming', 'Electric', 'Empty', 'Endless', 'Fading', 'Fallen',
      'Fearless', 'Flying', 'Forgotten', 'Frozen', 'Gentle', 'Glass', 'Golden', 'Grey', 'Hidden', 'Hollow', 'Honest',
      'Invisible', 'Iron', 'Ivory', 'Last', 'Lonely', 'Lost', 'Midnight', 'Narrow', 'Northern', 'Painted', 'Paper',
      'Patient', 'Quiet', 'Restless', 'Salt', 'Scarlet', 'Second', 'Secret', 'Silent', 'Silver', 'Sleeping',
      'Stolen', 'Thirteenth', 'Unfinished', 'Velvet', 'Wandering', 'Western', 'Wild'
    ] AS adjectives,
    ARRAY[
      'Acrobat', 'Alibi', 'Archive', 'Armada', 'Bakery', 'Ballad', 'Beacon', 'Bridge', 'Caravan', 'Cartographer',
      'Cathedral', 'Circus', 'Clockmaker', 'Comet', 'Compass', 'Corridor', 'Crossing', 'Daughter', 'Detective',
      'Diary', 'Diplomat', 'Echo', 'Embassy', 'Expedition', 'Falcon', 'Ferry', 'Festival', 'Formula', 'Frontier',
      'Garden', 'Harbour', 'Horizon', 'Hotel', 'Inheritance', 'Island', 'Journey', 'Key', 'Kingdom', 'Labyrinth',
      'Lantern', 'Letter', 'Library', 'Lighthouse', 'Machine', 'Mask', 'Meadow', 'Mirror', 'Monsoon', 'Mountain',
      'Neighbour', 'Notebook', 'Oath', 'Observatory', 'Orchard', 'Orchestra', 'Painter', 'Passenger', 'Pilot',
      'Pirate', 'Postman', 'Promise', 'Prophet', 'Quarry', 'Railway', 'River', 'Satellite', 'Shadow', 'Shepherd',
      'Signal', 'Sparrow', 'Station', 'Storm', 'Summer', 'Tailor', 'Telegram', 'Theatre', 'Tide', 'Train',
      'Verdict', 'Violin', 'Voyage', 'Watchtower', 'Whale', 'Widow', 'Witness', 'Wolf'
    ] AS nouns,
    ARRAY[
      'Aldermoor', 'Antwerp', 'Bergen', 'Biscay', 'Cadiz', 'Carthage', 'Corfu', 'Dubrovnik', 'Eastport', 'Fairhaven',
      'Galway', 'Ghent', 'Havana', 'Heligoland', 'Innsbruck', 'Jakarta', 'Kyoto', 'Lisbon', 'Marrakesh', 'Montevideo',
      'Naples', 'Odense', 'Porto', 'Quito', 'Riga', 'Samarkand', 'Shanghai', 'Tangier', 'Trieste', 'Uppsala',
      'Valparaiso', 'Vienna', 'Whitby', 'Yokohama', 'Zanzibar', 'Zurich'
    ] AS places,
    ARRAY[
      'Tales from', 'Ten Days in', 'The Road to', 'Three Letters from', 'Twilight in', 'Voyage to', 'Waiting for',
      'Welcome to', 'Winter in', 'Witness from'
    ] AS prefixes,
    ARRAY[
      'After Dark', 'Aftermath', 'Beyond the River', 'Homecoming', 'One More Time', 'Part Two', 'Reckoning',
      'The Beginning', 'The Long Way Home', 'The Lost Chapter', 'The Return', 'The Second Winter'
    ] AS subtitles,
    ARRAY[
      'A retired detective', 'A young cartographer', 'A ship''s cook', 'The youngest of three sisters',
      'A disgraced pilot', 'A small-town librarian', 'A travelling theatre', 'A stubborn lawyer',
      'An unlucky inventor', 'A widowed clockmaker', 'A team of divers', 'A night-shift nurse',
      'An exiled chess player', 'A retired spy', 'A shy astronomer', 'A railway engineer'
    ] AS heroes,
    ARRAY[
      'finds a letter that was never meant to be opened', 'has three days to prove a friend''s innocence',
      'inherits a house nobody dares to enter', 'is hired for a journey with no return ticket',
      'discovers that the town keeps one secret too many', 'must choose between the truth and the family',
      'agrees to one last job', 'receives a signal from a ship lost long ago',
      'falls in love on the eve of a great storm', 'takes the place of a stranger',
      'looks for a missing brother', 'builds a machine that should not work', 'learns to begin again',
      'wagers everything on a single evening'
    ] AS plots,
    ARRAY[
      'Бескрайний', 'Далёкий', 'Забытый', 'Зимний', 'Каменный', 'Лунный', 'Медленный', 'Ночной', 'Осенний', 'Последний',
      'Пустой', 'Северный', 'Седьмой', 'Синий', 'Случайный', 'Стеклянный', 'Странный', 'Тихий', 'Утренний', 'Хрустальный'
    ] AS adjectives_ru_m,
    ARRAY[
      'архив', 'архипелаг', 'берег', 'вокзал', 'гарнизон', 'город', 'двор', 'дозорный', 'маршрут', 'маяк', 'мост',
      'наблюдатель', 'оркестр', 'остров', 'пассажир', 'перевал', 'поезд', 'причал', 'рейс', 'сад', 'свидетель', 'сигнал',
      'след', 'снегопад', 'телеграф', 'экипаж'
    ] AS nouns_ru_m,
    ARRAY[
      'Белая', 'Вечерняя', 'Вторая', 'Горькая', 'Дальняя', 'Запасная', 'Звёздная', 'Красная', 'Майская', 'Невидимая',
      'Новая', 'Ночная', 'Первая', 'Последняя', 'Потерянная', 'Северная', 'Серебряная', 'Солёная', 'Тайная', 'Чужая'
    ] AS adjectives_ru_f,
    ARRAY[
      'башня', 'весна', 'вьюга', 'дача', 'дорога', 'застава', 'капель', 'комната', 'крепость', 'лодка', 'мелодия',
      'метель', 'орбита', 'память', 'переправа', 'пристань', 'река', 'смена', 'станция', 'тайга', 'тетрадь', 'тишина',
      'улица', 'формула', 'электричка', 'экспедиция'
    ] AS nouns_ru_f,
    ARRAY[
      'Отставной следователь', 'Молодой картограф', 'Провинциальный врач', 'Капитан старого буксира', 'Ночной диспетчер',
      'Школьный учитель физики', 'Начинающий журналист', 'Смотритель маяка', 'Бывший лётчик', 'Театральный художник'
    ] AS heroes_ru,
    ARRAY[
      'находит письмо, которое не должен был прочесть', 'получает сигнал с давно пропавшего корабля',
      'возвращается в город, которого больше нет на карте', 'берётся за последнее дело', 'ищет пропавшего брата',
      'решает начать всё сначала', 'узнаёт тайну старого дома', 'отправляется в путь без обратного билета',
      'встречает человека, которого считал погибшим', 'должен выбрать между правдой и дружбой'
    ] AS plots_ru
),
draw AS MATERIALIZED (
  SELECT
    s.n,
    pg_temp.cinema_hash('film title', s.n) AS t,
    pg_temp.cinema_hash('film facts', s.n) AS f,
    pg_temp.cinema_film_created(s.n) AS created
  FROM generate_series(1, pg_temp.cinema_size('cinema.films', 1000)) AS s (n)
)
INSERT INTO content.film_work (id, title, description, creation_date, rating, type, created, modified)
SELECT
  pg_temp.cinema_uuid('film', d.n),
  CASE
    WHEN k.n IS NOT NULL THEN k.title
    WHEN d.t % 10 = 0 THEN
      w.adjectives_ru_m[1 + d.t / 1000 % cardinality(w.adjectives_ru_m)] || ' '
      || w.nouns_ru_m[1 + d.t / 1000000 % cardinality(w.nouns_ru_m)]
    WHEN d.t % 10 = 1 THEN
      w.adjectives_ru_f[1 + d.t / 1000 % cardinality(w.adjectives_ru_f)] || ' '
      || w.nouns_ru_f[1 + d.t / 1000000 % cardinality(w.nouns_ru_f)]
    WHEN d.t % 10 <= 5 THEN
      'The ' || w.adjectives[1 + d.t / 1000 % cardinality(w.adjectives)] || ' '
      || w.nouns[1 + d.t / 1000000 % cardinality(w.nouns)]
    WHEN d.t % 10 = 6 THEN
      'The ' || w.nouns[1 + d.t / 1000000 % cardinality(w.nouns)]
      || ' of ' || w.places[1 + d.t / 1000 % cardinality(w.places)]
    WHEN d.t % 10 = 7 THEN
      w.prefixes[1 + d.t / 1000000 % cardinality(w.prefixes)] || ' '
      || w.places[1 + d.t / 1000 % cardinality(w.places)]
    ELSE
      'The ' || w.adjectives[1 + d.t / 1000 % cardinality(w.adjectives)] || ' '
      || w.nouns[1 + d.t / 1000000 % cardinality(w.nouns)] || ': '
      || w.subtitles[1 + d.t / 1000000000 % cardinality(w.subtitles)]
  END,
  CASE
    WHEN k.n IS NOT NULL THEN k.description
    WHEN d.f % 8 = 0 THEN NULL
    WHEN d.t % 10 <= 1 THEN
      w.heroes_ru[1 + d.f / 1000 % cardinality(w.heroes_ru)] || ' '
      || w.plots_ru[1 + d.f / 1000000 % cardinality(w.plots_ru)] || '.'
    ELSE
      w.heroes[1 + d.f / 1000 % cardinality(w.heroes)] || ' '
      || w.plots[1 + d.f / 1000000 % cardinality(w.plots)] || '.'
  END,
  CASE
    WHEN k.n IS NOT NULL THEN k.creation_date
    WHEN d.f / 1000000000 % 12 = 0 THEN NULL
    -- From 1950 to 2023, the more the later.
    ELSE date '2023-05-18' - ((d.t / 1000000000 % 26800) * (d.t / 1000000000 % 26800) / 26800)::integer
  END,
  CASE
    WHEN k.n IS NOT NULL THEN k.rating
    WHEN d.f / 1000000000000 % 10 = 0 THEN NULL
    ELSE pg_temp.cinema_film_quality(d.n) / 10.0
  END,
  CASE
    WHEN k.n IS NOT NULL THEN k.type
    WHEN d.f / 1000000000000000 % 7 = 0 THEN 'tv_show'
    ELSE 'movie'
  END,
  d.created,
  CASE
    WHEN d.n % 3 = 0 THEN pg_temp.cinema_moment(d.created, 365, pg_temp.cinema_hash('film modified', d.n))
    ELSE d.created
  END
FROM draw AS d
CROSS JOIN words AS w
LEFT JOIN known AS k ON k.n = d.n
ON CONFLICT DO NOTHING;

-- Genres of films: up to four draws that prefer the common genres; a repeated draw counts once. -----

WITH draw AS MATERIALIZED (
  SELECT
    s.n,
    pg_temp.cinema_uuid('film', s.n) AS film_id,
    pg_temp.cinema_film_created(s.n) AS created,
    pg_temp.cinema_hash('film genres', s.n) AS h
  FROM generate_series(1, pg_temp.cinema_size('cinema.films', 1000)) AS s (n)
),
genres AS MATERIALIZED (
  SELECT g.n, pg_temp.cinema_uuid('genre', g.n) AS genre_id
  FROM generate_series(1, 26) AS g (n)
),
links AS (
  -- Action, adventure and science fiction.
  SELECT d.n, d.film_id, d.created, g.genre_no
  FROM draw AS d
  CROSS JOIN (VALUES (3), (4), (5)) AS g (genre_no)
  WHERE d.n <= 26
  UNION
  SELECT d.n, d.film_id, d.created, 1 + (p.x * 26 / (1000 + 4 * (1000 - p.x)))::integer
  FROM draw AS d
  CROSS JOIN LATERAL (VALUES
    (0, d.h % 1000),
    (1, d.h / 1000 % 1000),
    (2, d.h / 1000000 % 1000),
    (3, d.h / 1000000000 % 1000)
  ) AS p (draw_no, x)
  WHERE d.n > 26 AND p.draw_no <= d.h / 1000000000000 % 4
)
INSERT INTO content.genre_film_work (id, film_work_id, genre_id, created)
SELECT
  pg_temp.cinema_uuid('film genre ' || l.n::text, l.genre_no),
  l.film_id,
  g.genre_id,
  l.created
FROM links AS l
JOIN genres AS g ON g.n = l.genre_no
ON CONFLICT DO NOTHING;

-- People of films: one to three directors, one to three writers, three to ten actors. --------------
-- The people of one film stand at equal steps in the numbered list of people, so nobody has the same
-- role twice; one film of three is written by its directors. The head of the list is drawn more often.

WITH draw AS MATERIALIZED (
  SELECT
    s.n,
    pg_temp.cinema_uuid('film', s.n) AS film_id,
    pg_temp.cinema_film_created(s.n) AS created,
    pg_temp.cinema_hash('film people', s.n) AS h,
    pg_temp.cinema_hash('film first person', s.n) >> 30 AS x,
    greatest(pg_temp.cinema_size('cinema.people', 4000), 16) AS people
  FROM generate_series(1, pg_temp.cinema_size('cinema.films', 1000)) AS s (n)
),
casts AS MATERIALIZED (
  SELECT
    d.n,
    d.film_id,
    d.created,
    d.people,
    ((d.x * d.x) >> 30) * d.people >> 30 AS first_person,
    1 + d.h / 1000000000000 % greatest(d.people / 64, 1) AS step,
    d.h / 1000000000 % 3 = 0 AS own_script,
    CASE WHEN d.h % 100 < 80 THEN 1 WHEN d.h % 100 < 95 THEN 2 ELSE 3 END AS directors,
    CASE WHEN d.h / 1000 % 100 < 50 THEN 1 WHEN d.h / 1000 % 100 < 85 THEN 2 ELSE 3 END AS writers,
    (3 + (d.h / 1000000 % 64) * (d.h / 1000000 % 64) / 505)::integer AS actors
  FROM draw AS d
)
INSERT INTO content.person_film_work (id, film_work_id, person_id, role, created)
SELECT
  pg_temp.cinema_uuid('film person ' || c.n::text, p.slot),
  c.film_id,
  pg_temp.cinema_uuid('person', 1 + (c.first_person + c.step * CASE
    WHEN c.own_script AND p.slot >= c.directors AND p.slot < c.directors + c.writers THEN p.slot - c.directors
    ELSE p.slot
  END) % c.people),
  CASE
    WHEN p.slot < c.directors THEN 'director'
    WHEN p.slot < c.directors + c.writers THEN 'writer'
    ELSE 'actor'
  END,
  c.created
FROM casts AS c
CROSS JOIN LATERAL generate_series(0, c.directors + c.writers + c.actors - 1) AS p (slot)
ON CONFLICT DO NOTHING;

-- Ratings -------------------------------------------------------------------------------------------
-- With u = i / n, number i of n ratings goes to film u^2 / (1 + 3 (1 - u)) of the films that are rated: a
-- film's share falls with its number, the first one has at most 2 n / sqrt(films), and the last tenth of
-- the catalogue has none. Ratings of one film are neighbours in i, and their users are taken round robin
-- from a place that depends on the film: nobody rates a film twice.

WITH sizes AS MATERIALIZED (
  SELECT
    z.ratings,
    z.films,
    greatest(z.ratings / 10, 2 * z.ratings / floor(sqrt(z.films))::bigint + 2) AS users
  FROM (
    SELECT
      pg_temp.cinema_size('cinema.ratings', 50000) AS ratings,
      greatest(pg_temp.cinema_size('cinema.films', 1000) * 9 / 10, 1) AS films
  ) AS z
),
films AS MATERIALIZED (
  SELECT
    s.n,
    pg_temp.cinema_uuid('film', s.n) AS film_id,
    pg_temp.cinema_film_quality(s.n) AS quality,
    pg_temp.cinema_hash('film first user', s.n) % z.users AS first_user
  FROM sizes AS z
  CROSS JOIN LATERAL generate_series(1, z.films) AS s (n)
),
draw AS (
  SELECT
    s.i,
    1 + (s.i * s.i / z.ratings) * z.films / (z.ratings + 3 * (z.ratings - s.i)) AS film_no,
    z.users,
    pg_temp.cinema_hash('rating', s.i) AS h
  FROM sizes AS z
  CROSS JOIN LATERAL generate_series(0, z.ratings - 1) AS s (i)
  OFFSET 0 -- computes h once, not at each of its uses
),
marks AS (
  SELECT
    d.i,
    f.film_id,
    (f.first_user + d.i) % d.users AS user_no,
    -- The film's quality and a bell of two draws around it, in tenths, rounded into 1 to 10.
    (f.quality + d.h / 100000000000000 % 36 + d.h / 3600000000000000 % 36 - 30) / 10 AS mark,
    pg_temp.cinema_moment('2022-01-01 00:00:00+00', 1060, d.h) AS created,
    -- One rating of nine was changed within a month.
    CASE WHEN d.h % 9 = 0 THEN pg_temp.cinema_hash('rating modified', d.i) ELSE 0 END AS later
  FROM draw AS d
  JOIN films AS f ON f.n = d.film_no
)
INSERT INTO ugc.ratings (id, user_id, film_id, rating, created, modified)
SELECT
  pg_temp.cinema_uuid('rating', m.i),
  pg_temp.cinema_uuid('user', m.user_no),
  m.film_id,
  least(10, greatest(1, m.mark))::smallint,
  m.created,
  pg_temp.cinema_moment(m.created, 30, m.later)
FROM marks AS m
ON CONFLICT DO NOTHING;

-- Make again what a large size has dropped; nothing at a small one. ---------------------------------

DO $do$
DECLARE
  statement text;
BEGIN
  PERFORM set_config('maintenance_work_mem', '256MB', true)
  WHERE EXISTS (SELECT FROM pg_temp.cinema_rebuild);
  FOR statement IN SELECT r.statement FROM pg_temp.cinema_rebuild AS r ORDER BY r.step, r.statement LOOP
    EXECUTE statement;
  END LOOP;
END
$do$;

-- Leave nothing behind but the data. ----------------------------------------------------------------

DROP TABLE pg_temp.cinema_rebuild;

DROP FUNCTION pg_temp.cinema_film_quality(bigint);
DROP FUNCTION pg_temp.cinema_film_created(bigint);
DROP FUNCTION pg_temp.cinema_moment(timestamptz, bigint, bigint);
DROP FUNCTION pg_temp.cinema_hash(text, bigint);
DROP FUNCTION pg_temp.cinema_uuid(text, bigint);
DROP FUNCTION pg_temp.cinema_size(text, bigint);

ANALYZE content.film_work, content.genre, content.genre_film_work, content.person, content.person_film_work, ugc.ratings;
