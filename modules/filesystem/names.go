package filesystem

// The further names of the tools. Those that look like names are what other
// systems call them and resolve calls; the others are phrases, in several
// languages, by which a search finds them.
var (
	readNames = []string{"FileRead", "read_file", "file_read", "read_text_file", "view_file", "open_file", "cat", "get_file_contents",
		"show the content of a file", "lire un fichier", "afficher le contenu d'un fichier", "Datei lesen", "Dateiinhalt anzeigen",
		"leer un archivo", "leer fichero", "leggere un file", "ler um arquivo", "ler ficheiro", "bestand lezen", "odczytaj plik",
		"dosya oku", "قراءة ملف", "baca berkas", "læs fil", "прочитать файл", "读取文件", "查看文件内容", "ファイルを読む", "파일 읽기"}
	writeNames = []string{"FileWrite", "write_file", "file_write", "create_file", "write_to_file", "save_file", "overwrite_file",
		"create a new file with content", "écrire un fichier", "créer un fichier", "enregistrer un fichier", "Datei schreiben", "Datei anlegen",
		"escribir un archivo", "crear un archivo", "guardar archivo", "scrivere un file", "creare un file", "escrever um arquivo", "criar ficheiro",
		"bestand schrijven", "zapisz plik", "dosya yaz", "كتابة ملف", "tulis berkas", "skriv fil", "записать файл", "создать файл",
		"写入文件", "创建文件", "ファイルに書き込む", "ファイルを作成", "파일 쓰기", "파일 만들기"}
	editNames = []string{"FileEdit", "edit_file", "file_edit", "str_replace", "replace_in_file", "patch_file", "apply_edit", "modify_file",
		"change a passage of a file", "find and replace in a file", "modifier un fichier", "remplacer dans un fichier", "Datei bearbeiten", "Text ersetzen",
		"editar un archivo", "reemplazar texto", "modificare un file", "sostituire testo", "editar um arquivo", "substituir texto",
		"bestand bewerken", "edytuj plik", "dosya düzenle", "تعديل ملف", "sunting berkas", "rediger fil", "изменить файл", "заменить текст в файле",
		"编辑文件", "替换文本", "ファイルを編集", "파일 편집"}
	appendNames = []string{"FileAppend", "append_file", "append_to_file", "file_append", "add lines at the end of a file",
		"ajouter à la fin d'un fichier", "an Datei anhängen", "añadir al final de un archivo", "aggiungere in fondo a un file", "acrescentar a um arquivo",
		"toevoegen aan bestand", "dopisz do pliku", "добавить в конец файла", "追加到文件", "ファイルに追記", "파일에 추가"}
	listNames = []string{"FileList", "list_files", "list_directory", "list_dir", "directory_tree", "ls", "show the content of a folder",
		"lister les fichiers", "contenu d'un dossier", "Dateien auflisten", "Ordnerinhalt anzeigen", "Verzeichnis auflisten", "listar archivos", "contenido de una carpeta",
		"elencare i file", "contenuto della cartella", "listar arquivos", "listar ficheiros", "bestanden tonen", "lista plików", "dosyaları listele",
		"عرض الملفات", "daftar berkas", "vis filer", "список файлов", "содержимое папки", "列出文件", "查看目录", "ファイル一覧", "フォルダの内容", "파일 목록"}
	globNames = []string{"FileGlob", "glob_files", "find_files", "file_search", "find files by name", "find files by pattern",
		"trouver des fichiers par nom", "chercher un fichier", "Dateien nach Namen suchen", "Datei finden", "buscar archivos por nombre", "encontrar un archivo",
		"trovare file per nome", "encontrar arquivos por nome", "bestanden zoeken op naam", "znajdź pliki", "dosya bul", "البحث عن ملفات",
		"cari berkas", "find filer", "найти файлы по имени", "按名称查找文件", "ファイルを探す", "파일 찾기"}
	grepNames = []string{"FileGrep", "search_files", "search_in_files", "grep_search", "grep_files", "search_code", "search text in files", "find text in files", "regular expression search",
		"chercher du texte dans les fichiers", "rechercher dans les fichiers", "Text in Dateien suchen", "Dateien durchsuchen", "buscar texto en archivos",
		"cercare testo nei file", "procurar texto nos arquivos", "tekst zoeken in bestanden", "szukaj tekstu w plikach", "dosyalarda metin ara",
		"البحث في الملفات", "cari teks dalam berkas", "søg i filer", "искать текст в файлах", "在文件中搜索文本", "ファイル内を検索", "파일 내용 검색"}
	moveNames = []string{"FileMove", "move_file", "rename_file", "file_move", "mv", "rename a file or folder", "déplacer un fichier", "renommer un fichier",
		"Datei verschieben", "Datei umbenennen", "mover un archivo", "renombrar archivo", "spostare un file", "rinominare un file", "mover um arquivo", "renomear ficheiro",
		"bestand verplaatsen", "przenieś plik", "dosya taşı", "نقل ملف", "إعادة تسمية ملف", "pindahkan berkas", "flyt fil",
		"переместить файл", "переименовать файл", "移动文件", "重命名文件", "ファイルを移動", "ファイル名を変更", "파일 이동", "파일 이름 바꾸기"}
	deleteNames = []string{"FileDelete", "delete_file", "remove_file", "file_delete", "delete_directory", "rm", "erase a file", "remove a folder",
		"supprimer un fichier", "effacer un dossier", "Datei löschen", "Ordner entfernen", "borrar archivo", "eliminar un archivo", "cancellare un file", "eliminare un file",
		"apagar um arquivo", "excluir ficheiro", "bestand verwijderen", "usuń plik", "dosya sil", "حذف ملف", "hapus berkas", "slet fil",
		"удалить файл", "удалить папку", "删除文件", "删除文件夹", "ファイルを削除", "파일 삭제"}
	mkdirNames = []string{"FileMkdir", "create_directory", "make_directory", "create_folder", "make_dir", "new folder",
		"créer un dossier", "Ordner erstellen", "Verzeichnis anlegen", "crear una carpeta", "crear directorio", "creare una cartella", "criar uma pasta",
		"map maken", "utwórz folder", "klasör oluştur", "إنشاء مجلد", "buat folder", "opret mappe", "создать папку", "创建文件夹", "新建目录", "フォルダを作成", "폴더 만들기"}
	statNames = []string{"FileStat", "get_file_info", "file_info", "file_stat", "file_exists", "size and checksum of a file", "does a file exist",
		"informations sur un fichier", "taille d'un fichier", "Dateiinformationen", "Dateigröße", "información de un archivo", "tamaño de archivo",
		"informazioni su un file", "informações do arquivo", "bestandsinformatie", "informacje o pliku", "dosya bilgisi", "معلومات الملف",
		"info berkas", "filoplysninger", "сведения о файле", "размер файла", "文件信息", "文件大小", "ファイル情報", "파일 정보"}
	zipNames = []string{"FileExtractZip", "extract_zip", "unzip", "unzip_file", "extract_archive", "unpack a zip archive", "décompresser une archive zip", "extraire un zip",
		"ZIP entpacken", "Archiv entpacken", "descomprimir un zip", "extraer archivo zip", "estrarre un archivio zip", "extrair um zip", "descompactar zip",
		"zip uitpakken", "rozpakuj zip", "zip aç", "فك ضغط ملف", "ekstrak zip", "udpak zip", "распаковать zip", "解压缩文件", "解压 zip", "zipを展開", "압축 풀기"}
)
