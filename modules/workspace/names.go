package workspace

// The further names of the tools: what other systems call them, and phrases by
// which a search finds them.
var (
	writeNames = []string{"WsWrite", "write_artifact", "save_artifact", "workspace_write", "store a result as a file", "écrire un artefact", "enregistrer un artefact",
		"Artefakt schreiben", "Ergebnis ablegen", "escribir un artefacto", "guardar artefacto", "scrivere un artefatto", "escrever um artefato", "artefact opslaan",
		"zapisz artefakt", "записать артефакт", "写入工件", "保存产物", "成果物を書き込む", "산출물 저장"}
	readNames = []string{"WsRead", "read_artifact", "workspace_read", "lire un artefact", "Artefakt lesen", "leer un artefacto", "leggere un artefatto",
		"ler um artefato", "artefact lezen", "odczytaj artefakt", "прочитать артефакт", "读取工件", "成果物を読む", "산출물 읽기"}
	editNames = []string{"WsEdit", "edit_artifact", "workspace_edit", "modifier un artefact", "Artefakt bearbeiten", "editar un artefacto", "modificare un artefatto",
		"editar um artefato", "artefact bewerken", "edytuj artefakt", "изменить артефакт", "编辑工件", "成果物を編集", "산출물 편집"}
	globNames = []string{"WsGlob", "list_artifacts", "find_artifacts", "workspace_glob", "lister les artefacts", "Artefakte auflisten", "listar artefactos",
		"elencare gli artefatti", "listar artefatos", "artefacten tonen", "lista artefaktów", "список артефактов", "列出工件", "成果物一覧", "산출물 목록"}
	grepNames = []string{"WsGrep", "search_artifacts", "workspace_grep", "chercher dans les artefacts", "Artefakte durchsuchen", "buscar en artefactos",
		"cercare negli artefatti", "procurar nos artefatos", "artefacten doorzoeken", "szukaj w artefaktach", "искать в артефактах", "搜索工件", "成果物を検索", "산출물 검색"}
	deleteNames = []string{"WsDelete", "delete_artifact", "remove_artifact", "workspace_delete", "supprimer un artefact", "Artefakt löschen", "borrar artefacto",
		"eliminare un artefatto", "apagar um artefato", "artefact verwijderen", "usuń artefakt", "удалить артефакт", "删除工件", "成果物を削除", "산출물 삭제"}
)
